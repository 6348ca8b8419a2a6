import type { KubeClient } from '../../../kube/client/client.ts';
import type { EventRecorder } from '../../../kube/events.ts';
import type { Inventory } from '../../../inventory/inventory.ts';
import type { Clock } from '../../../runtime/clock.ts';
import type { ReconcileContext } from '../../../runtime/controller.ts';
import type { Fence } from '../../../runtime/fence.ts';
import type { ControllerStores } from '../../stores.ts';
import type { PodLooks } from '../pod-looks.ts';
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
  events: EventRecorder;
  clock: Clock;
  config: InstanceConfig;
  vanished: Vanished;
  /** Tries of a login the way users take; left out, a Ready pod is enough. */
  logins?: PodLooks<boolean> | undefined;
  /** Looks for Jupyter in instances of that runtype; undefined when it cannot be told now. */
  jupyters?: PodLooks<JupyterState | undefined> | undefined;
}

/** Whether Jupyter answers in an instance, does not yet, is not installed, or could not be looked for. */
export type JupyterState = 'answers' | 'silent' | 'missing' | 'unseen';

/** One reconcile of one instance. */
export interface Run {
  deps: InstanceDeps;
  key: string;
  context: ReconcileContext;
}
