import { hasImage } from '../../inventory/offers.ts';
import type { NodeFacts } from '../../inventory/nodes/node-view.ts';
import type { Pod } from '../../kube/types.ts';
import type { PullAttempts } from './attempts.ts';
import { type PullNames, pullState } from './pull-pod.ts';

/** Nodes of a pool that pull at the same time: a registry and its way are for all of them. */
export const NODES_AT_ONCE = 4;

type PullNode = Pick<NodeFacts, 'name' | 'images'>;

/** One image that one node should have. */
export interface Wanted {
  /** Of the pod that pulls it. */
  name: string;
  node: string;
  image: string;
}

export interface PullPlan {
  create: Wanted[];
  /** Pods to delete. */
  remove: Pod[];
  /** Pods that have ended, to be counted before they are deleted. */
  ended: { name: string; uid: string; message?: string }[];
  /** The names of everything that the pool asks for. */
  names: ReadonlySet<string>;
  /** When time alone changes the plan, milliseconds since the epoch; Infinity for never. */
  changesAt: number;
}

interface PlanInput {
  pool: string;
  images: readonly string[];
  /** Those that should have the images. */
  nodes: readonly PullNode[];
  /** The pods that pull for this pool. */
  pods: readonly Pod[];
  attempts: PullAttempts;
  pulls: PullNames;
  now: number;
}

/** The nodes of a pool that should have its images: those that take instances, and run containers. */
export function pullNodes(nodes: Iterable<NodeFacts>, pool: string): NodeFacts[] {
  return [...nodes].filter(
    (facts) => facts.pool?.name === pool && facts.resources.length > 0 && !facts.isClosed && !facts.simulated,
  );
}

/** What to do next about the images of a pool: which pods to make, to count and to delete. */
export function planPulls(input: PlanInput): PullPlan {
  const { images, nodes, pods, pulls, now } = input;
  const wanted = new Map<string, Wanted>();
  for (const image of images) {
    for (const { name: node } of nodes) {
      const name = pulls.of(node, image);
      wanted.set(name, { name, node, image });
    }
  }
  const plan: PullPlan = { create: [], remove: [], ended: [], names: new Set(wanted.keys()), changesAt: Infinity };
  const underWay = new Map<string, Wanted | undefined>();
  for (const pod of pods) {
    const { name, uid = '' } = pod.metadata;
    const state = pullState(pod, now);
    const pull = wanted.get(name);
    if (state.is === 'leaving' || (state.is === 'pulling' && pull !== undefined)) underWay.set(name, pull);
    if (state.is === 'leaving') continue;
    if (state.is === 'pulling' && pull !== undefined) {
      plan.changesAt = Math.min(plan.changesAt, state.changesAt ?? Infinity);
      continue;
    }
    plan.remove.push(pod);
    if (state.is === 'pulling' || pull === undefined) continue;
    plan.ended.push({ name, uid, ...(state.is === 'failed' && { message: state.message }) });
  }
  // What has ended is counted first: it says what to try next. Its deletion brings the next look.
  if (plan.remove.length === 0) choose(input, [...wanted.values()], underWay, plan);
  return plan;
}

/** Adds the pods to make. */
function choose(
  { pool, nodes, attempts, now }: PlanInput,
  wanted: readonly Wanted[],
  underWay: ReadonlyMap<string, Wanted | undefined>,
  plan: PullPlan,
): void {
  const imagesOf = new Map(nodes.map((node) => [node.name, node]));
  const pulling = [...underWay.values()].filter((pull) => pull !== undefined);
  const busy = new Set(pulling.map(({ node }) => node));
  const trying = new Set(pulling.map(({ image }) => image));
  const doubtful = doubtfulImages({ pool, attempts }, wanted, imagesOf);
  for (const pull of wanted) {
    const { name, node, image } = pull;
    const facts = imagesOf.get(node);
    if (underWay.has(name) || facts === undefined || hasImage(facts, image)) continue;
    if (attempts.isDone(pool, name)) {
      plan.changesAt = Math.min(plan.changesAt, attempts.doneUntil(pool, name));
      continue;
    }
    const due = attempts.dueAt(pool, name);
    if (due > now) {
      plan.changesAt = Math.min(plan.changesAt, due);
      continue;
    }
    if (busy.size >= NODES_AT_ONCE || busy.has(node) || (doubtful.has(image) && trying.has(image))) continue;
    busy.add(node);
    trying.add(image);
    plan.create.push(pull);
  }
}

/** Images that failed on a node and that no node has: one node at a time tries these. */
function doubtfulImages(
  { pool, attempts }: Pick<PlanInput, 'pool' | 'attempts'>,
  wanted: readonly Wanted[],
  nodes: ReadonlyMap<string, PullNode>,
): Set<string> {
  const failing = wanted.filter(({ name }) => attempts.failureOf(pool, name) !== undefined);
  const doubtful = new Set(failing.map(({ image }) => image));
  for (const { name, node, image } of doubtful.size === 0 ? [] : wanted) {
    const facts = nodes.get(node);
    if (attempts.isDone(pool, name) || (facts !== undefined && hasImage(facts, image))) doubtful.delete(image);
  }
  return doubtful;
}
