import { EventRecorder } from '../kube/events.ts';
import type { RunSignals } from '../runtime/controller.ts';
import { createInstanceController, type InstanceControllerDeps } from './gpu-instance/controller.ts';
import { ensurePriorityClasses } from './priority-classes.ts';
import { createStatusControllers } from './status-controllers.ts';

/**
 * One term as the leader: runs all controllers until the signals end them. Everything a leader needs is made anew here;
 * nothing is carried over from an earlier term.
 */
export async function lead(deps: Omit<InstanceControllerDeps, 'events'>, signals: RunSignals): Promise<void> {
  const { client, clock, log } = deps;
  await ensurePriorityClasses(client, signals.abort);
  const events = new EventRecorder({ client, component: 'berth-controller', clock, log });
  const closing = new AbortController();
  const recorded = events.run(closing.signal);
  const controllers = [createInstanceController({ ...deps, events }), ...createStatusControllers(deps)];
  await Promise.all(controllers.map((controller) => controller.run(signals)));
  closing.abort();
  await recorded;
}
