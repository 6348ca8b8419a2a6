import { isolationOn } from './nodes/isolation.ts';
import type { NodeFacts } from './nodes/node-view.ts';

/** Whether the tenants of a pool are kept apart from each other and from its nodes, as far as the cluster shows it. */
export interface PoolIsolation {
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
    const message = `Kubernetes does not show whether the container runtime of node ${named(unconfirmed)} lets a container choose GPUs by its environment. Set it up and check it as docs/run/install.md says, then label the node berth.dev/gpu-isolation=enforced.`;
    return { status: 'Unknown', reason: 'NotConfirmed', message };
  }
  const message =
    'The label berth.dev/gpu-isolation=enforced of every node says that containers get only their own GPUs.';
  return { status: 'True', reason: 'Enforced', message };
}
