import { type Host, ThisHost } from '../lib/host/host.ts';
import { type Consent, meetNeeds } from '../lib/host/meet-needs.ts';
import { findCniFolder, findStaticBusybox, REAL_NODE_PACKAGES } from '../lib/host/requirements.ts';
import { LocalFailure } from '../lib/failure.ts';
import type { Progress } from '../lib/progress.ts';

/** Paths of what the real node takes from this machine. */
export interface NodeTools {
  cniFolder: string;
  busybox: string;
}

/** The tools of a real node, or why all nodes are simulated. */
export type NodeDecision = { tools: NodeTools } | { simulated: string };

/** What the images need that are made here for the node of a kind cluster. */
const IMAGE_PACKAGES = ['static busybox', 'static tini'] as const;

/** Why this machine cannot run containers, whatever is installed; undefined when it can. */
export function nodeObstacle({ platform, isRoot }: Host): string | undefined {
  if (platform !== 'linux') return 'containers need Linux';
  return isRoot ? undefined : 'containers need root';
}

/**
 * Decides whether a real node joins the cluster. With consent it installs the missing system packages. Without, it says
 * how to get them, and the cluster goes on with simulated nodes.
 */
export async function decideNode({ progress, ...consent }: Consent & { progress: Progress }): Promise<NodeDecision> {
  const host = new ThisHost(progress);
  const obstacle = nodeObstacle(host);
  if (obstacle !== undefined) return { simulated: obstacle };
  const shortage = await meetNeeds({ host, names: REAL_NODE_PACKAGES, subject: 'Real containers need', ...consent });
  const [cniFolder, busybox] = await Promise.all([findCniFolder(), findStaticBusybox()]);
  if (shortage === undefined && cniFolder !== undefined && busybox !== undefined) {
    return { tools: { cniFolder, busybox } };
  }
  const { missing = [], install, failed } = shortage ?? {};
  if (failed !== undefined) return { simulated: failed };
  const remedy = install === undefined ? '' : `. To run real containers: ${install}`;
  return { simulated: `missing on this host: ${missing.join(', ')}${remedy}` };
}

/**
 * The static busybox for the images that a kind cluster gets. With consent it installs what they need. Throws LocalFailure
 * where they cannot be made.
 */
export async function decideImages({ progress, ...consent }: Consent & { progress: Progress }): Promise<string> {
  const host = new ThisHost(progress);
  if (host.platform !== 'linux') throw new LocalFailure('the images of this checkout are made on Linux.', '');
  const shortage = await meetNeeds({ host, names: IMAGE_PACKAGES, subject: 'The images of the node need', ...consent });
  const busybox = await findStaticBusybox();
  if (shortage === undefined && busybox !== undefined) return busybox;
  throw new LocalFailure(
    `missing on this host: ${(shortage?.missing ?? IMAGE_PACKAGES).join(', ')}.`,
    shortage?.install === undefined ? '' : `To run those of this checkout: ${shortage.install}`,
  );
}
