import { isNodeReady, isOutOfService, isSimulated } from '../../inventory/nodes/node-state.ts';
import { hasStopped, mayRun } from '../../inventory/nodes/pod-end.ts';
import { findObject } from '../../kube/client/find-object.ts';
import { NotFoundError } from '../../kube/errors.ts';
import { keyOf, type Node, type Pod, PODS } from '../../kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../resources/instances/gpu-instance.ts';
import { withClaimOf } from '../../resources/pod/claim-on-pod.ts';
import { startOf } from '../../resources/pod/owner.ts';
import { hasPodFinalizer, POD_FINALIZER } from '../../resources/pod/pod-finalizer.ts';
import { Controller } from '../../runtime/controller.ts';
import { Fence } from '../../runtime/fence.ts';
import { storeSource } from '../../runtime/source.ts';
import { changeSource } from '../change-source.ts';
import { type CommonDeps, RECONCILE_TIMEOUT_MS } from '../common-deps.ts';
import { isPodOf, logOf } from '../gpu-instance/decide/pod/pod-facts.ts';
import type { KeepLog } from '../history/keep-log.ts';
import { LogTakes } from '../history/log-takes.ts';

type Deps = Pick<CommonDeps, 'client' | 'stores'> & {
  fence: Fence;
  logs: Pick<LogTakes, 'isOver' | 'follow' | 'leave'>;
};

/** A burst of instances that end must not wait for one another. */
const WORKERS = 8;

function isLost(node: Node | undefined): boolean {
  return node === undefined || isOutOfService(node);
}

/** The patch that takes the finalizer off. It fails on another pod of this name, and when another client did it. */
function withoutFinalizer({ metadata }: Pod): object[] {
  const path = `/metadata/finalizers/${metadata.finalizers?.indexOf(POD_FINALIZER)}`;
  return [
    { op: 'test', path: '/metadata/uid', value: metadata.uid },
    { op: 'test', path, value: POD_FINALIZER },
    { op: 'remove', path },
  ];
}

/** Whether the log of a pod goes with it. That of one that ended by itself is kept before its deletion. */
function goesWithLog(pod: Pod, node: Node | undefined): boolean {
  if (pod.metadata.deletionTimestamp === undefined) return false;
  return node !== undefined && isNodeReady(node) && !isSimulated(node);
}

/** What an instance says of the start of a pod: it holds its place and is billed, that is over, or nothing yet. */
function stateOfStart(instance: GpuInstance | undefined, pod: Pod): 'open' | 'over' | 'unknown' {
  const { incarnation = 0, claim } = instance?.status ?? {};
  const start = startOf(pod)?.incarnation ?? 0;
  if (instance === undefined || !isPodOf(instance, pod) || incarnation < start) return 'unknown';
  return incarnation === start && claim !== undefined ? 'open' : 'over';
}

/** Whether a start that holds its place still does. */
function isSameClaim(before: GpuInstance, after: GpuInstance | undefined): boolean {
  return (
    after?.status?.claim !== undefined &&
    after.status.incarnation === before.status?.incarnation &&
    after.metadata.uid === before.metadata.uid
  );
}

/** Whether the bill of a pod's start is still open. It ends when the program did, which the pod says and nothing else. */
async function isBilled(
  { client, stores }: Pick<Deps, 'client' | 'stores'>,
  pod: Pod,
  signal: AbortSignal,
): Promise<boolean> {
  const start = startOf(pod);
  if (start === undefined) return false;
  const ref = { namespace: pod.metadata.namespace, name: start.name };
  const known = stateOfStart(stores.instances.get(keyOf(ref)), pod);
  if (known !== 'unknown') return known === 'open';
  // The cache may be behind, or the instance is gone.
  const live = await findObject(client, GPU_INSTANCES, ref, { signal });
  return stateOfStart(live && withClaimOf(live, pod), pod) === 'open';
}

/** Lets a pod go when its program has ended and its instance, if there is one still, has closed the bill of the start. */
export async function reconcilePod(
  { client, stores, fence, logs }: Deps,
  key: string,
  signal: AbortSignal,
): Promise<void> {
  const pod = stores.pods.get(key);
  if (pod === undefined || !hasPodFinalizer(pod)) return;
  const { nodeName } = pod.spec ?? {};
  const node = nodeName === undefined ? undefined : stores.nodes.get(nodeName);
  const phase = goesWithLog(pod, node) ? logOf(pod) : undefined;
  if (phase === 'running') logs.follow(key, pod);
  if (mayRun(pod, node)) return;
  if (phase === 'ended' && hasStopped(pod) && !logs.isOver(key, { pod, phase })) return;
  if (await isBilled({ client, stores }, pod, signal)) return;
  try {
    const after = await client.patch(PODS, pod.metadata, withoutFinalizer(pod), { type: 'json', signal });
    fence.wrote(key, stores.pods, after);
    logs.leave(key, pod);
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
  }
}

/**
 * Takes the finalizer off pods whose program has ended, once that is billed. Until then a pod counts, also one that was
 * deleted by force.
 */
export function createPodController(deps: CommonDeps & { keepLog: KeepLog }): Controller {
  const { clock, keepLog, log, stores } = deps;
  const fence = new Fence(clock, log);
  const logs = new LogTakes({ keep: keepLog, clock, log });
  return new Controller({
    name: 'pods',
    sources: [
      logs.source,
      storeSource(stores.pods, (pod) => (hasPodFinalizer(pod) ? [keyOf(pod)] : [])),
      changeSource(stores.nodes, ({ key, before, after }) =>
        isLost(before) === isLost(after) ? [] : stores.pods.by('keptOn', key).map(keyOf),
      ),
      changeSource(stores.instances, ({ before, after }) => {
        if (before?.status?.claim === undefined || isSameClaim(before, after)) return [];
        const { podName } = before.status;
        return podName === undefined ? [] : [keyOf({ namespace: before.metadata.namespace, name: podName })];
      }),
    ],
    reconcile: (key, { signal }) => reconcilePod({ ...deps, fence, logs }, key, signal),
    concurrency: WORKERS,
    timeoutMs: RECONCILE_TIMEOUT_MS,
    fence,
    clock,
    log,
    metrics: deps.metrics('pods', WORKERS),
  });
}
