import { Activity } from '../access/activity.ts';
import type { Caches } from '../caches/caches.ts';
import type { Shutdown } from '../runtime/shutdown.ts';
import type { Process } from './process.ts';

export class RoleContext {
  readonly process: Process;
  readonly caches: Caches;
  readonly shutdown: Shutdown;
  #activity: Activity | undefined;

  constructor(process: Process, caches: Caches, shutdown: Shutdown) {
    this.process = process;
    this.caches = caches;
    this.shutdown = shutdown;
  }

  /** Records the use of instances. Started at the first call, and stopped after the roles that asked for it. */
  activity(): Activity {
    this.#activity ??= this.#startActivity();
    return this.#activity;
  }

  #startActivity(): Activity {
    const activity = new Activity({ ...this.process, instances: this.caches.get('instances') });
    const ended = new AbortController();
    const running = activity.run(ended.signal);
    this.shutdown.defer('activity', () => {
      ended.abort();
      return running;
    });
    return activity;
  }
}

/** Starts one role; what it must do at the end it hands to `shutdown`. */
export type Role = (context: RoleContext) => Promise<void>;
