export type { Clock } from '../kube/clock.ts';
