import type { Caches } from '../caches/caches.ts';
import type { Shutdown } from '../runtime/shutdown.ts';
import type { Process } from './process.ts';

/** What a role is started with. */
export interface RoleContext {
  process: Process;
  caches: Caches;
  shutdown: Shutdown;
}

/** Starts one role; what it must do at the end it hands to `shutdown`. */
export type Role = (context: RoleContext) => Promise<void>;
