import { trySeed } from './try-seed.ts';
import type { Job } from './pool.ts';

// A process that runs the worlds that its parent hands out, one after the other.
process.on('message', (job: Job) => {
  void trySeed(job).then((result) => process.send?.(result));
});
