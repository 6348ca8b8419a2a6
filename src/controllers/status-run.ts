import type { ReconcileContext } from '../runtime/controller.ts';
import type { CommonDeps } from './common-deps.ts';

/** One reconcile of a controller that only writes statuses. */
export interface StatusRun {
  deps: Pick<CommonDeps, 'client' | 'stores' | 'inventory' | 'clock'>;
  key: string;
  context: ReconcileContext;
}
