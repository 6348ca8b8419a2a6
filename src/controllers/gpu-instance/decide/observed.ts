import type { Node, Pod } from '../../../kube/types.ts';
import type { GpuInstance } from '../../../resources/gpu-instance.ts';
import type { Settings } from './settings.ts';

/** Whether Jupyter answers in an instance, does not yet, is not installed, or could not be looked for. */
export type JupyterState = 'answers' | 'silent' | 'missing' | 'unseen';

/** Everything that a decision about one instance looks at. */
export interface Observed {
  instance: GpuInstance;
  /** Every pod of the instance, of whatever start. */
  pods: readonly Pod[];
  /** The pod of the current start. */
  pod: Pod | undefined;
  /** The node of the claim, or of the pod; undefined when it is not there any more. */
  node: Node | undefined;
  /** Undefined when the template the instance names is not there. */
  settings: Settings | undefined;
  /** Ids in spec.sshKeyIds for which there is no key, and how many keys open the instance. */
  keys: { missing: readonly number[]; usable: number };
  /** Pod of NVIDIA's metrics exporter on the node. */
  exporter: Pod | undefined;
  /** Whether a login was tried and worked; undefined when logins are not checked. */
  login: 'works' | 'pending' | undefined;
  /** What the last look for Jupyter found; undefined when none was due. */
  jupyter: JupyterState | undefined;
  /** Milliseconds since the epoch. */
  now: number;
}
