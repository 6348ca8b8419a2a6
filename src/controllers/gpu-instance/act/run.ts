import type { KubeClient } from '../../../kube/client/client.ts';
import type { EventRecorder } from '../../../kube/events.ts';
import type { Inventory } from '../../../inventory/inventory.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { ReconcileContext } from '../../../runtime/controller.ts';
import type { Fence } from '../../../runtime/fence.ts';
import type { ControllerStores } from '../../stores.ts';
import type { JupyterState } from '../decide/observed.ts';
import type { PodChecks } from '../pod-checks.ts';
import type { SshAddress } from '../decide/status/status.ts';
import type { Vanished } from '../vanished.ts';
import type { WaitingLine } from '../waiting-line.ts';

export interface InstanceConfig {
  /** Image of instances that name none. */
  defaultImage: string;
  /** Image whose /tools the instances' tools volume is filled from. */
  toolsImage: string;
  ssh: SshAddress;
}

export interface InstanceDeps {
  client: KubeClient;
  stores: ControllerStores;
  inventory: Inventory;
  line: WaitingLine;
  fence: Fence;
  events: Pick<EventRecorder, 'record'>;
  clock: Clock;
  config: InstanceConfig;
  vanished: Vanished;
  /** Tries of a login the way users take; left out, a Ready pod is enough. */
  logins?: PodChecks<boolean> | undefined;
  /** Looks for Jupyter in instances of that runtype; undefined when it cannot be told now. */
  jupyters?: PodChecks<JupyterState | undefined> | undefined;
}

/** One reconcile of one instance. */
export interface Run {
  deps: InstanceDeps;
  key: string;
  context: ReconcileContext;
}
