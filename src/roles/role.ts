import type { Shutdown } from '../runtime/shutdown.ts';
import type { Process } from './process.ts';
import type { Stores } from '../caches/table.ts';

/** What a role is started with. */
export interface RoleContext {
  process: Process;
  stores: Stores;
  shutdown: Shutdown;
}

/** Starts one role; what it must do at the end it hands to `shutdown`. */
export type Role = (context: RoleContext) => Promise<void>;
