import type { Node, Pod } from '../../../kube/types.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import type { MonitorLine } from '../../../resources/pod/monitor.ts';
import type { TemplateFate, TemplateSnapshot } from '../../../resources/instance-template.ts';
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

/** What an instance has of its template. */
export interface ObservedTemplate {
  /** What it was rented with or, before that, what it would be rented with now. */
  snapshot: TemplateSnapshot;
  fate: TemplateFate;
}

/** Everything that a decision about one instance depends on. */
export interface Observed {
  instance: GpuInstance;
  /** Every pod of the instance, of any start. */
  pods: readonly Pod[];
  /** The pod of the current start. */
  pod: Pod | undefined;
  /** The node of the claim, or of the pod; undefined when it is gone. */
  node: Node | undefined;
  /** Undefined when the instance names none. `missing` and `tooLarge`: it cannot be rented so. */
  template: ObservedTemplate | 'missing' | 'tooLarge' | undefined;
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
  /** Why a spent budget stops it; undefined while none does. */
  overspent: string | undefined;
  /** Milliseconds since the epoch. */
  now: number;
}
