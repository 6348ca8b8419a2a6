export { systemClock, type Clock } from '../kube/clock.ts';
