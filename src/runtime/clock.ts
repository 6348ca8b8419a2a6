export type { Clock } from '../lib/clock.ts';
