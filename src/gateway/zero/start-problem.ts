import type { Pod } from '../../kube/types.ts';

/** Why a server does not become ready. */
export interface StartProblem {
  /** For every caller: names no image, registry or node. */
  words: string;
  /** What Kubernetes says, for callers of the server's own namespace. */
  detail: string;
  /** Only a person can mend it, so nobody waits for it. */
  isFinal: boolean;
}

const CONTAINER_WORDS: Readonly<Record<string, string>> = {
  ImagePullBackOff: 'The image of its server cannot be pulled.',
  InvalidImageName: 'The image of its server cannot be pulled.',
  ErrImageNeverPull: 'The image of its server is not on the node.',
  CreateContainerConfigError: 'The container of its server cannot be created.',
  CrashLoopBackOff: 'Its server ends again and again while it starts.',
};
const DETAIL_MAX = 300;

/** Why none of these pods is ready: the first thing that Kubernetes says about one. `undefined`: nothing is wrong yet. */
export function startProblem(pods: Iterable<Pod>): StartProblem | undefined {
  let waits: StartProblem | undefined;
  for (const pod of pods) {
    if (pod.metadata.deletionTimestamp !== undefined) continue;
    const broken = brokenContainer(pod);
    if (broken !== undefined) return broken;
    waits ??= withoutNode(pod);
  }
  return waits;
}

function brokenContainer({ metadata, status }: Pod): StartProblem | undefined {
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  for (const { name, state } of statuses) {
    const { reason = '', message = '' } = state?.waiting ?? {};
    const words = CONTAINER_WORDS[reason];
    if (words === undefined) continue;
    const detail = `Container '${name}' of pod '${metadata.name}': ${reason}: ${message}`;
    return { words, detail: detail.slice(0, DETAIL_MAX), isFinal: true };
  }
  return undefined;
}

/** A node may come or become free, so calls go on waiting. */
function withoutNode({ metadata, status }: Pod): StartProblem | undefined {
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status !== 'False') return undefined;
  const detail = `Pod '${metadata.name}': ${scheduled.message ?? scheduled.reason ?? ''}`;
  return { words: 'No node has room for its server.', detail: detail.slice(0, DETAIL_MAX), isFinal: false };
}

/** The pods that a Service selects. A Service without a selector selects none. */
export function* selectedPods(
  pods: Iterable<Pod>,
  namespace: string,
  selector: Readonly<Record<string, string>> | undefined,
): Generator<Pod> {
  const wanted = Object.entries(selector ?? {});
  if (wanted.length === 0) return;
  for (const pod of pods) {
    const { labels } = pod.metadata;
    if (pod.metadata.namespace === namespace && wanted.every(([key, value]) => labels?.[key] === value)) yield pod;
  }
}
