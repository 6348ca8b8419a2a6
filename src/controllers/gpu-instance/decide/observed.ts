import type { Node, PersistentVolumeClaim, Pod } from '../../../kube/types.ts';
import type { PodDevice } from '../../../inventory/devices/device-index.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import type { MonitorLine } from '../../../resources/pod/monitor.ts';
import type { TemplateFate, TemplateSnapshot } from '../../../resources/instance-template.ts';
import type { Reserved } from '../../../resources/instances/line.ts';
import type { RentedGpus } from '../../../resources/instances/rented.ts';
import type { Settings } from './settings.ts';

/** Jupyter answers, does not answer yet, is not installed, or could not be looked for. */
export type JupyterState = 'answers' | 'silent' | 'missing' | 'unseen';

/** What the exporter of an instance said when the controller asked it. */
export interface MonitorState {
  /** Whether it measures the load of the GPUs; `silent` when it did not answer. */
  gpus: 'measured' | 'partial' | 'none' | 'failed' | 'silent';
  /** When it was asked, milliseconds since the epoch. */
  askedAt: number;
  /** When a GPU was last busy, as the exporter says, and never after `askedAt`; undefined when none was. */
  busyAt: number | undefined;
}

/** The answer of an exporter, undefined for none, to a question of `askedAt` (milliseconds since the epoch). */
export function monitorStateOf(said: MonitorLine | undefined, askedAt: number): MonitorState {
  if (said === undefined) return { gpus: 'silent', askedAt, busyAt: undefined };
  const { tool, measured, idleSeconds } = said;
  const isTool = tool !== 'none' && tool !== 'failed';
  const gpus = isTool ? (measured > 0 ? ('measured' as const) : ('partial' as const)) : tool;
  return { gpus, askedAt, busyAt: idleSeconds === undefined ? undefined : askedAt - idleSeconds * 1000 };
}

/** What the replicas that serve instances say of their use. */
export interface SessionEvidence {
  /** Before that, who wanted to use an instance may not have been able to; milliseconds since the epoch. */
  since: number;
  /** Every use until then is in the instances, milliseconds since the epoch. */
  until: number;
  /** The versions of the caches of instances that the replicas judged by. */
  versions: readonly string[];
}

/** What an instance has of its template. */
export interface ObservedTemplate {
  /** What it was rented with or, before that, what it would be rented with now. */
  snapshot: TemplateSnapshot;
  fate: TemplateFate;
}

/** Everything that a decision about one instance depends on. */
export interface Observed {
  /** With the silences of its node until now. */
  instance: GpuInstance;
  /** Every pod of the instance, of any start. */
  pods: readonly Pod[];
  /** Those of them whose program may run: they have GPUs, whatever becomes of their objects. */
  running: readonly Pod[];
  /** The pod of the current start. */
  pod: Pod | undefined;
  /** The GPUs that Dynamic Resource Allocation gave it, by driver, pool and name; absent or empty where none is known. */
  devices?: readonly PodDevice[];
  /** Its PersistentVolumeClaim; undefined when there is none, or only one of somebody else. */
  disk: PersistentVolumeClaim | undefined;
  /** The node of the claim, or of the pod; undefined when it is gone. */
  node: Node | undefined;
  /** Undefined when the instance names none. `missing` and `tooLarge`: it cannot be rented so. */
  template: ObservedTemplate | 'missing' | 'tooLarge' | undefined;
  /** What its owner sees in the offers, of an instance without a claim and without a price that was seen. */
  offered?: { gpus: RentedGpus; pricePerHour: string; currency: string } | undefined;
  /** The place that others leave for the instance; undefined where none do. */
  reserved?: Reserved | undefined;
  /** Others are told to end for it now. */
  othersEnd?: boolean | undefined;
  /** Its namespace is being deleted: nothing can be made there any more. */
  namespaceGoes?: boolean | undefined;
  /** Undefined when the template of the instance cannot be used. */
  settings: Settings | undefined;
  /** The ids in spec.sshKeyIds that no key has, and how many keys open the instance. */
  keys: { missing: readonly number[]; usable: number };
  /** Pod of NVIDIA DCGM exporter on the node. */
  exporter: Pod | undefined;
  /** Whether a login worked already; undefined when logins are not checked. */
  login: 'works' | 'pending' | undefined;
  /** What the last look for Jupyter found; undefined when none was due. */
  jupyter: JupyterState | undefined;
  /** The last answer of the exporter in the pod; undefined when there is none, or before the first answer. */
  monitor: MonitorState | undefined;
  /** What Events say while its disk is provisioned or its node sets it up, such as FailedMount; undefined while nothing is known. */
  trouble: string | undefined;
  /** Undefined where nobody serves instances. */
  sessions: SessionEvidence | undefined;
  /** Whether the pod must stay a moment longer, because the end of its log is being kept. */
  keepsLog: boolean;
  /** Why a spent budget stops it; undefined while none does. */
  overspent: string | undefined;
  /** Milliseconds since the epoch. */
  now: number;
}
