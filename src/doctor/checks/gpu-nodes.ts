import { Inventory } from '../../inventory/inventory.ts';
import { gpuCounts } from '../../inventory/nodes/gpu-counts.ts';
import { isPassing } from '../../inventory/nodes/node-state.ts';
import type { NodeView } from '../../inventory/nodes/node-view.ts';
import { type Obstacle, obstaclesOf } from '../../inventory/nodes/obstacles.ts';
import { orderPools, type Pool } from '../../inventory/pools.ts';
import type { Deployment } from '../../kube/installation-types.ts';
import type { Node } from '../../kube/types.ts';
import { cached, deviceStores } from '../cached.ts';
import { rolesIn, variableOf } from '../facts.ts';
import { byFault, check, firstOf, named, type Problem, quoted } from '../finding.ts';

/** Labels of node feature discovery, with the class of the device or without, and of NVIDIA's GPU Operator. */
const LABELS = /^feature\.node\.kubernetes\.io\/pci-(?:03\d\d_)?10de\.present$|^nvidia\.com\/gpu\.present$/;
const RESOURCES = /^nvidia\.com\/(?:gpu|mig-)/;

/** Whether a node has GPUs of NVIDIA as far as its capacity or its labels tell: healthy or not, in a pool or in none. */
export function looksLikeGpuNode({ metadata, status }: Node): boolean {
  const amounts = Object.entries({ ...status?.allocatable, ...status?.capacity });
  if (amounts.some(([name, amount]) => RESOURCES.test(name) && amount !== '0')) return true;
  return Object.entries(metadata.labels ?? {}).some(([name, value]) => LABELS.test(name) && value === 'true');
}

type Words = Pick<Problem, 'severity' | 'message' | 'why' | 'remedy'>;
type Foreign = Extract<Obstacle, { reason: 'Architecture' }>;
type Taint = Extract<Obstacle, { reason: 'Tainted' }>['taint'];

interface Case {
  /** The nodes, as the subject of a sentence. */
  who: string;
  /** The first nodes, as words of a command. */
  words: string;
  /** Name of their pool. */
  pool: string;
}

const IDLE = 'Nothing new starts there, and their GPUs earn nothing.';

const WORDS: Record<
  Exclude<Obstacle['reason'], 'Tainted' | 'Architecture'>,
  (of: Case) => Omit<Words, 'why'> & { why?: string }
> = {
  NoGPUs: ({ who, words }) => ({
    severity: 'error',
    message: `${who}: labels tell of GPUs, and no device plugin offers any to Kubernetes.`,
    remedy: `kubectl get pods --all-namespaces -o wide --field-selector spec.nodeName=${words.split(' ', 1)[0]}`,
  }),
  NoHealthyGPUs: ({ who, words }) => ({
    severity: 'error',
    message: `${who}: the device plugin holds every GPU for unhealthy.`,
    remedy: `kubectl describe node ${words}`,
  }),
  NoPool: ({ who }) => ({
    severity: 'warning',
    message: `${who}: no GPUPool selects the labels.`,
    remedy: 'kubectl get gpupools -o custom-columns=NAME:.metadata.name,SELECTOR:.spec.nodeSelector',
  }),
  NoSize: ({ who, pool }) => ({
    severity: 'error',
    message: `${who}: every size of GPUPool ${pool} asks for more GPUs than there are on the node.`,
    remedy: `kubectl patch gpupool ${pool} --type json -p '[{"op":"add","path":"/spec/sizes/-","value":1}]'`,
  }),
  Deleted: ({ who, words }) => ({
    severity: 'warning',
    message: `${who}: deleted, and finalizers keep the object.`,
    remedy: `kubectl get node ${words} -o custom-columns=NAME:.metadata.name,FINALIZERS:.metadata.finalizers`,
  }),
  NotReady: ({ who, words }) => ({
    severity: 'error',
    message: `${who}: not Ready.`,
    why: `${IDLE} Instances on a node that stays away are NodeLost until its Node object is deleted.`,
    remedy: `kubectl describe node ${words}`,
  }),
  Cordoned: ({ who, words }) => ({
    severity: 'warning',
    message: `${who}: cordoned.`,
    remedy: `kubectl uncordon ${words}`,
  }),
  RuntimeClass: withoutUserNamespaces,
  UserNamespaces: withoutUserNamespaces,
  Quarantined: ({ who }) => ({
    severity: 'warning',
    message: `${who}: instances keep failing to start, so the controller waits up to ten minutes before the next one.`,
    remedy: 'kubectl get events --all-namespaces --field-selector type=Warning --sort-by=.lastTimestamp',
  }),
  Switched: ({ who }) => ({
    severity: 'warning',
    message: `${who}: the GPUs were switched between whole, MIG and time-sliced, or became fewer, while instances have them.`,
    why: 'Nobody knows which of the present GPUs those instances have, so nothing new starts there until they have ended.',
    remedy: `kubectl get gpuinstances --all-namespaces -o custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,NODE:.status.claim.node,RESOURCE:.status.claim.resourceName`,
  }),
};

function withoutUserNamespaces({ who, words, pool }: Case): Omit<Words, 'why'> {
  return {
    severity: 'error',
    message: `${who}: GPUPool ${pool} requires user namespaces, and the container runtime there does not say that it has them.`,
    remedy: `kubectl get node ${words} -o custom-columns=NAME:.metadata.name,RUNTIME:.status.nodeInfo.containerRuntimeVersion   # update the runtime; if the pool does not require them, root in an instance is root on its node`,
  };
}

function tainted({ key, value = '', effect }: Taint, { who, words }: Case, pool: Pool | undefined): Words {
  const taint = `${key}${value === '' ? '' : `=${value}`}:${effect}`;
  const severity = 'warning';
  if (isPassing(key)) {
    const message = `${who}: has the taint ${taint}, as while something is wrong with a node, or while it is emptied.`;
    const remedy = `kubectl describe node ${words}   # repair what its conditions and events say: the taint goes by itself`;
    return { severity, message, why: IDLE, remedy };
  }
  if (pool === undefined) {
    const message = `${who}: no instance tolerates the taint ${taint}.`;
    return { severity, message, why: IDLE, remedy: `kubectl taint node ${words} ${quoted(`${taint}-`)}` };
  }
  const tolerations = [...(pool.spec.tolerations ?? []), { key, operator: 'Equal', value, effect }];
  const patch = quoted(JSON.stringify({ spec: { tolerations } }));
  return {
    severity,
    message: `${who}: no instance of GPUPool ${pool.name} tolerates the taint ${taint}.`,
    why: IDLE,
    remedy: `kubectl patch gpupool ${pool.name} --type merge -p ${patch}`,
  };
}

function foreign({ architecture }: Foreign, { who, words }: Case): Words {
  return {
    severity: 'warning',
    message: `${who}: of the architecture ${architecture}, for which Berth's tools are not built.`,
    why: IDLE,
    remedy: `kubectl get nodes -L kubernetes.io/arch ${words}   # an image for both goes with image.architectures of the chart`,
  };
}

/** What keeps these nodes of a pool out of the offers, in words. */
function describe(obstacle: Obstacle, nodes: readonly string[], pool: Pool | undefined): Words {
  const who = `${nodes.length === 1 ? 'Node' : 'Nodes'} ${named(nodes)}`;
  const of: Case = { who, words: firstOf(nodes).words, pool: pool?.name ?? '' };
  if (obstacle.reason === 'Tainted') return tainted(obstacle.taint, of, pool);
  if (obstacle.reason === 'Architecture') return foreign(obstacle, of);
  return { why: IDLE, ...WORDS[obstacle.reason](of) };
}

/** Kubernetes adds these taints to a node that is not ready, cordoned or unreachable, and takes them away itself. */
function isEcho(obstacle: Obstacle, all: readonly Obstacle[]): boolean {
  return (
    obstacle.reason === 'Tainted' &&
    obstacle.taint.key.startsWith('node.kubernetes.io/') &&
    all.some(({ reason }) => reason === 'NotReady' || reason === 'Cordoned')
  );
}

/** What the chart says of the image. */
function toolsArchitectures(controller: Deployment | undefined): ReadonlySet<string> | undefined {
  const given = variableOf(controller, 'BERTH_TOOLS_ARCHITECTURES');
  return given === undefined ? undefined : new Set(given.split(','));
}

/** Nodes of no pool are not for rent, whatever else they lack. */
function tellable(all: readonly Obstacle[]): readonly Obstacle[] {
  const noPool = all.filter(({ reason }) => reason === 'NoPool');
  return noPool.length > 0 ? noPool : all.filter((obstacle) => !isEcho(obstacle, all));
}

function unhealthy(nodes: readonly Node[], viewOf: (node: string) => NodeView | undefined): Problem[] {
  const some = nodes.filter((node) => {
    const view = viewOf(node.metadata.name);
    const counts = view === undefined ? [] : gpuCounts(view, []);
    return counts.some((count) => count.unhealthy > 0 && count.unhealthy < count.total);
  });
  const names = some.map(({ metadata }) => metadata.name);
  if (names.length === 0) return [];
  return [
    {
      severity: 'warning',
      reason: 'UnhealthyGPUs',
      objects: names.map((name) => `node/${name}`),
      message: `Nodes ${named(names)}: the device plugin holds some GPUs for unhealthy.`,
      why: 'They are not offered. An instance that has one keeps it, unless its owner chose that it starts again.',
      remedy: `kubectl describe node ${firstOf(names).words}`,
    },
  ];
}

export const gpuNodes = check({
  name: 'gpu-nodes',
  title: 'Every node with GPUs is for rent',
  needs: ['nodes', 'pools', 'instances', 'resourceSlices', 'deviceClasses', 'deployments'],
  find({ nodes, pools, instances, deployments, ...devices }, { now, namespace }) {
    // The check of pools says so once.
    if (pools.length === 0) return [];
    const architectures = toolsArchitectures(rolesIn(deployments, namespace).get('controller'));
    const stores = {
      nodes: cached(nodes),
      pods: cached([]),
      pools: cached(pools),
      instances: cached(instances),
      storageClasses: cached([]),
      devices: deviceStores(devices),
    };
    const inventory = new Inventory(stores, { now: () => now }, { architectures });
    const ordered = orderPools(pools);
    const viewOf = (name: string): NodeView | undefined => inventory.viewOf(name);
    const found = nodes.flatMap((node) => {
      const view = viewOf(node.metadata.name);
      if (view === undefined) return [];
      if (!looksLikeGpuNode(node) && gpuCounts(view, []).length === 0) return [];
      const pool = view.facts.pool?.name;
      return tellable(obstaclesOf(node, view, architectures)).map(
        (obstacle) => [JSON.stringify({ obstacle, pool }), { obstacle, pool, name: node.metadata.name }] as const,
      );
    });
    inventory.close();
    const problems = [...byFault(found).values()].flatMap((group): Problem[] => {
      const [first] = group;
      if (first === undefined) return [];
      const names = group.map(({ name }) => name).toSorted();
      const pool = ordered.find(({ name }) => name === first.pool);
      const { reason } = first.obstacle;
      return [{ reason, objects: names.map((name) => `node/${name}`), ...describe(first.obstacle, names, pool) }];
    });
    return [...problems, ...unhealthy(nodes, viewOf)];
  },
});
