import type { KubeClient } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import type { Pod } from '../../kube/types.ts';
import type { GpuInstance } from '../../resources/gpu-instance.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { ReconcileContext } from '../../runtime/controller.ts';
import type { Fence } from '../../runtime/fence.ts';
import type { ControllerStores } from '../stores.ts';
import type { SshAddress } from './status.ts';
import type { WaitingLine } from './waiting-line.ts';

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
  /** Tries a login through the path that users take; left out, a Ready pod is enough. */
  checkLogin?: ((instance: GpuInstance, pod: Pod, signal: AbortSignal) => Promise<boolean>) | undefined;
  /** Looks for Jupyter in an instance of that runtype; undefined when it cannot be told now. */
  checkJupyter?: ((pod: Pod) => Promise<JupyterState | undefined>) | undefined;
}

/** Whether Jupyter answers in an instance, does not yet, or is not installed. */
export type JupyterState = 'answers' | 'silent' | 'missing';

/** One reconcile of one instance. */
export interface Run {
  deps: InstanceDeps;
  key: string;
  context: ReconcileContext;
}
