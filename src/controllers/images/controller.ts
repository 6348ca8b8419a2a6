import { AlreadyExistsError, ForbiddenError, InvalidError } from '../../kube/errors.ts';
import { findCondition } from '../../kube/conditions.ts';
import { keyOf, type Node, type Pod, PODS } from '../../kube/types.ts';
import type { StoreChange } from '../../kube/watch/store.ts';
import { sameJson } from '../../lib/json.ts';
import type { GpuPool } from '../../resources/gpu-pool.ts';
import { poolOfPull } from '../../resources/pod/image-pull.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import { Fence } from '../../runtime/fence.ts';
import { type Source, storeSource } from '../../runtime/source.ts';
import { type CommonDeps, RECONCILE_TIMEOUT_MS } from '../common-deps.ts';
import { DelayedCall } from '../delayed-call.ts';
import { sentence, words } from '../gpu-instance/decide/pod/pod-facts.ts';
import { planPulls, pullNodes, type Wanted } from './plan.ts';
import type { Pulls } from './progress.ts';
import { pullPod } from './pull-pod.ts';

/** A fleet that comes up changes its nodes all the time, and a pull that begins a second later costs nothing. */
const DELAY_MS = 1_000;

export interface ImageDeps extends CommonDeps {
  pulls: Pulls;
  config: {
    /** Berth's own. */
    namespace: string;
    toolsImage: string;
    imagePullSecrets: readonly string[];
  };
}

interface Deps extends ImageDeps {
  fence: Fence;
}

/** What of a node decides about pulls. A heartbeat changes none of it. */
function pullFacts(node: Node | undefined): unknown {
  if (node === undefined) return undefined;
  const { labels } = node.metadata;
  const { images, allocatable, conditions } = node.status ?? {};
  const { taints, unschedulable } = node.spec ?? {};
  const isReady = findCondition(conditions, 'Ready')?.status;
  return { isReady, taints, unschedulable, labels, images, allocatable };
}

function nodeChanged({ before, after }: StoreChange<Node>): boolean {
  return !sameJson(pullFacts(before), pullFacts(after));
}

/** The pools with images, some time after a change of nodes. */
function nodeSource({ stores, clock }: ImageDeps): Source {
  return {
    synced: stores.nodes.synced,
    start(add) {
      const call = new DelayedCall(clock, DELAY_MS, () => {
        for (const pool of stores.pools.values()) if ((pool.spec.images ?? []).length > 0) add(keyOf(pool));
      });
      const stop = stores.nodes.onChange((change) => {
        if (nodeChanged(change)) call.request();
      });
      return () => {
        stop();
        call.cancel();
      };
    },
  };
}

function poolsOf(pod: Pod): string[] {
  const pool = poolOfPull(pod);
  return pool === undefined ? [] : [pool];
}

/** Brings the images that pools list to their nodes, by pods in Berth's own namespace. */
export function createImageController(deps: ImageDeps): Controller {
  const { clock, log, stores } = deps;
  const fence = new Fence(clock, log);
  return new Controller({
    name: 'images',
    sources: [storeSource(stores.pools, (pool) => [keyOf(pool)]), storeSource(stores.pods, poolsOf), nodeSource(deps)],
    reconcile: (pool, { signal }) => reconcilePool({ ...deps, fence }, pool, signal),
    concurrency: 1,
    timeoutMs: RECONCILE_TIMEOUT_MS,
    fence,
    clock,
    log,
    metrics: deps.metrics('images', 1),
  });
}

/** One look at the images of a pool. Every write waits for its cache before the next look. */
export async function reconcilePool(deps: Deps, name: string, signal: AbortSignal): Promise<Result> {
  const { stores, inventory, clock, pulls } = deps;
  const pool = stores.pools.get(name);
  const isThere = pool !== undefined && pool.metadata.deletionTimestamp === undefined;
  const images = isThere ? (pool.spec.images ?? []) : [];
  const pods = stores.pods.by('imagePull', name).filter(({ metadata }) => metadata.namespace === deps.config.namespace);
  const plan = planPulls({
    pool: name,
    images,
    nodes: images.length === 0 ? [] : pullNodes(inventory.nodes(), name),
    pods,
    attempts: pulls.attempts,
    pulls: pulls.names,
    now: clock.now(),
  });
  pulls.attempts.keep(name, plan.names);
  for (const { name: pod, ...end } of plan.ended) pulls.attempts.note(name, pod, end);
  for (const pod of plan.remove) await remove(deps, name, pod, signal);
  let refused = false;
  if (isThere) for (const pull of plan.create) refused = !(await create(deps, pool, pull, signal)) || refused;
  // The next look knows when what was refused is due again.
  const waitMs = refused ? 0 : plan.changesAt - clock.now();
  return Number.isFinite(waitMs) ? { requeueAfterMs: Math.max(waitMs, DELAY_MS) } : undefined;
}

/** False when the API server refuses the pod, which then counts as a pull that failed. */
async function create(deps: Deps, pool: GpuPool, pull: Wanted, signal: AbortSignal): Promise<boolean> {
  const { client, stores, fence, config, pulls, clock } = deps;
  try {
    const made = await client.create(PODS, pullPod({ pool, ...pull, ...config }), { signal });
    fence.wrote(pool.metadata.name, stores.pods, made);
    return true;
  } catch (error) {
    // A pod of this name that the cache does not show, or a rule of the cluster that refuses it: the next look may help.
    const isRefused = [AlreadyExistsError, ForbiddenError, InvalidError].some((kind) => error instanceof kind);
    if (!isRefused || !(error instanceof Error)) throw error;
    const message = sentence(words(`The API server takes no pod that pulls: ${error.message}`, ''));
    pulls.attempts.note(pool.metadata.name, pull.name, { uid: `refused at ${clock.now()}`, message });
    return false;
  }
}

async function remove({ client, stores, fence }: Deps, pool: string, pod: Pod, signal: AbortSignal): Promise<void> {
  const { namespace, name, uid } = pod.metadata;
  await client.delete(PODS, { namespace, name }, { signal, ...(uid !== undefined && { uid }) });
  fence.deleted(pool, stores.pods, pod);
}
