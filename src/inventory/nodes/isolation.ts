import type { Node } from '../../kube/types.ts';
import type { Pool } from '../pools.ts';
import type { NodeFacts } from './node-view.ts';

/** Which handlers of a node's container runtime can run a pod in a user namespace of its own. */
export interface UserNamespaceSupport {
  /** Their names; the empty string is the default handler. */
  readonly handlers: ReadonlySet<string>;
  /** Whether every handler can. */
  readonly all: boolean;
}

/** What an instance asks of its node beside what its pool asks. */
export interface IsolationNeeds {
  /** RuntimeClass that the instance names. */
  readonly runtimeClassName: string | undefined;
  /** Whether the tenant may choose this class where the pool has none. */
  readonly mayChoose: boolean;
  /** The pod must run in a user namespace. */
  readonly userNamespaces: boolean;
}

/** How a pod is kept apart from its node. */
export interface PodIsolation {
  runtimeClassName: string | undefined;
  userNamespaces: boolean;
  /** Without a user namespace the pod must not run. */
  isRequired: boolean;
}

/** What a node lacks for an instance. */
export type IsolationGap = 'RuntimeClass' | 'UserNamespaces';

interface Facts {
  readonly pool: Pool | undefined;
  readonly userNamespaces: UserNamespaceSupport;
}

const NO_NEEDS: IsolationNeeds = { runtimeClassName: undefined, mayChoose: false, userNamespaces: false };

/** What the kubelet says in status.runtimeHandlers, from Kubernetes 1.30 on. A node that says nothing cannot. */
export function userNamespaceSupport({ status }: Node): UserNamespaceSupport {
  const handlers = status?.runtimeHandlers ?? [];
  const able = handlers.filter(({ features }) => features?.userNamespaces === true);
  return {
    handlers: new Set(able.map(({ name }) => name ?? '')),
    all: able.length > 0 && able.length === handlers.length,
  };
}

// The handler of a RuntimeClass stands in an object that Berth may not read, and mostly has the name of the class.
function canIsolate({ handlers, all }: UserNamespaceSupport, runtimeClassName = ''): boolean {
  return all || handlers.has(runtimeClassName);
}

/**
 * How a pod runs on a node, or what the node lacks. The RuntimeClass of the pool always holds. The pool, the tenant's
 * ceilings and the instance may each require a user namespace, and none of them can lift what another requires.
 */
export function isolationOn({ pool, userNamespaces }: Facts, needs = NO_NEEDS): PodIsolation | IsolationGap {
  const own = pool?.spec.runtimeClassName;
  const wanted = needs.runtimeClassName ?? own;
  if (wanted !== own && (own !== undefined || !needs.mayChoose)) return 'RuntimeClass';
  const rule = pool?.spec.userNamespaces ?? 'Never';
  const isRequired = needs.userNamespaces || rule === 'Required';
  const isAble = canIsolate(userNamespaces, wanted);
  if (isRequired && !isAble) return 'UserNamespaces';
  return { runtimeClassName: wanted, userNamespaces: isAble && (isRequired || rule === 'Preferred'), isRequired };
}

/** Whether the tenants of a pool are kept apart from each other and from its nodes, as far as the cluster shows it. */
interface PoolIsolation {
  status: 'True' | 'False' | 'Unknown';
  reason: 'Enforced' | 'NoNodes' | 'NoUserNamespaces' | 'SharedGPUs' | 'NotConfirmed';
  message: string;
}

const MOST_NAMED = 5;

/** The first names, and how many more there are. */
function named(nodes: readonly NodeFacts[]): string {
  const names = nodes.map(({ name }) => name).toSorted();
  const rest = names.length - MOST_NAMED;
  return names.slice(0, MOST_NAMED).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}

/** Of a pool's nodes with GPUs; simulated ones run no container. The first thing that is wrong is told. */
export function poolIsolation(nodes: readonly NodeFacts[]): PoolIsolation {
  const real = nodes.filter(({ simulated, resources }) => !simulated && resources.length > 0);
  if (real.length === 0)
    return { status: 'Unknown', reason: 'NoNodes', message: 'The pool has no node with real GPUs.' };
  const unable = real.filter((facts) => isolationOn(facts) === 'UserNamespaces');
  if (unable.length > 0) {
    const message = `spec.userNamespaces is Required, and the container runtime of node ${named(unable)} does not run pods in user namespaces. Nothing is rented there. Update the runtime, or choose Preferred.`;
    return { status: 'False', reason: 'NoUserNamespaces', message };
  }
  const shared = real.filter(({ resources }) => resources.some(({ isolation }) => isolation === 'time_sliced'));
  if (shared.length > 0) {
    const message = `GPUs of node ${named(shared)} are shared by time-slicing or MPS: their instances share memory and faults. Rent them to tenants who trust each other, or stop sharing.`;
    return { status: 'False', reason: 'SharedGPUs', message };
  }
  const unconfirmed = real.filter(({ isGpuIsolationEnforced }) => !isGpuIsolationEnforced);
  if (unconfirmed.length > 0) {
    const message = `Kubernetes does not show whether the container runtime of node ${named(unconfirmed)} lets a container choose GPUs by its environment. Set it up and check it as docs/install.md says, then label the node berth.dev/gpu-isolation=enforced.`;
    return { status: 'Unknown', reason: 'NotConfirmed', message };
  }
  const message =
    'The label berth.dev/gpu-isolation=enforced of every node says that containers get their own GPUs alone.';
  return { status: 'True', reason: 'Enforced', message };
}
