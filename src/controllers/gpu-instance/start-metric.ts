import { Counter, Histogram, type Registry } from 'prom-client';
import { ENDING_REASONS } from './decide/endings.ts';
import { START_STAGES, type StageTime } from './decide/status/stage-times.ts';

/** Seconds: from a start with everything in place to the pull of a large image. */
const BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 3_600];

export type NoteStageTimes = (times: readonly StageTime[]) => void;
export type NoteEnding = (reason: string) => void;

/** Registers the histogram of the parts of starts; call it once per registry. One series for each stage, no others. */
export function createStartMetric(registry: Registry): NoteStageTimes {
  const histogram = new Histogram({
    name: 'berth_instance_start_stage_seconds',
    help: 'Seconds that instances spent in each stage of a start, from accepted to a login that works. A stage is observed when it is over.',
    labelNames: ['stage'],
    buckets: BUCKETS,
    registers: [registry],
  });
  for (const stage of START_STAGES) histogram.zero({ stage });
  return (times) => {
    for (const { stage, seconds } of times) histogram.observe({ stage }, seconds);
  };
}

/** Registers the counter of starts that ended; call it once per registry. One series for each reason of the code. */
export function createEndingMetric(registry: Registry): NoteEnding {
  const counter = new Counter({
    name: 'berth_instance_endings_total',
    help: 'Starts that the controller decided to end, by reason.',
    labelNames: ['reason'],
    registers: [registry],
  });
  for (const reason of ENDING_REASONS) counter.inc({ reason }, 0);
  return (reason) => counter.inc({ reason });
}
