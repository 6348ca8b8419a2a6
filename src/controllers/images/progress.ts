import { hasImage } from '../../inventory/offers.ts';
import type { NodeFacts } from '../../inventory/nodes/node-view.ts';
import type { Finding } from '../../kube/conditions.ts';
import type { GpuPool, GpuPoolStatus } from '../../resources/gpu-pool.ts';
import type { Failure, PullAttempts } from './attempts.ts';
import { pullNodes } from './plan.ts';
import type { PullNames } from './pull-pod.ts';

type Progress = NonNullable<GpuPoolStatus['images']>;

/** What is known of the pulls of a leader. */
export interface Pulls {
  attempts: PullAttempts;
  names: PullNames;
}

/** Where the images of a pool are. `nodes`: all nodes. */
export function imageProgress(
  { metadata: { name: pool }, spec }: GpuPool,
  nodes: Iterable<NodeFacts>,
  { attempts, names }: Pulls,
): Progress {
  const members = pullNodes(nodes, pool);
  // A pool of an older version has no list.
  return (spec.images ?? []).map((image) => {
    const missing = members.filter(
      (facts) => !hasImage(facts, image) && !attempts.isDone(pool, names.of(facts.name, image)),
    );
    const failures = missing
      .map(({ name }) => attempts.failureOf(pool, names.of(name, image)))
      .filter((failure) => failure !== undefined);
    const present = members.length - missing.length;
    return { image, nodes: members.length, present, failing: failures.length, ...messageOf(failures) };
  });
}

function messageOf(failures: readonly Failure[]): { message?: string } {
  const last = failures.toSorted((a, b) => b.at - a.at)[0];
  return last === undefined ? {} : { message: last.message };
}

/** The condition ImagesReady; undefined for a pool without a list. */
export function imagesReady(progress: Progress): Finding | undefined {
  const type = 'ImagesReady';
  const [first] = progress;
  if (first === undefined) return undefined;
  if (first.nodes === 0) {
    const message =
      'No node of the pool pulls images: it has none that takes instances now, or these are simulated and run no containers.';
    return { type, status: 'True', reason: 'NothingToPull', message };
  }
  const failing = progress.find((one) => one.failing > 0);
  if (failing !== undefined) {
    const { image, failing: count, nodes, message = '' } = failing;
    const said = `${image} cannot be pulled on ${count} of ${nodes} nodes. The controller tries again. ${message}`;
    return { type, status: 'False', reason: 'PullFailed', message: said };
  }
  const [present, wanted] = [sum(progress, 'present'), sum(progress, 'nodes')];
  if (present < wanted) {
    const message = `The nodes have ${present} of ${wanted} copies of the images in spec.images. The others are being pulled, a few nodes at a time.`;
    return { type, status: 'False', reason: 'Pulling', message };
  }
  return { type, status: 'True', reason: 'Present', message: 'Every node that takes instances has the images.' };
}

function sum(progress: Progress, field: 'present' | 'nodes'): number {
  return progress.reduce((total, one) => total + one[field], 0);
}
