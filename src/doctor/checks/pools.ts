import { type NodeFacts, nodeFacts } from '../../inventory/nodes/node-view.ts';
import { orderPools, type Pool, poolOf, priceOf, storageClassOf } from '../../inventory/pools.ts';
import type { Node, StorageClass } from '../../kube/types.ts';
import { deviceClassNamesOf, type GpuPool } from '../../resources/gpu-pool.ts';
import { compareMoney } from '../../resources/money.ts';
import { looksLikeGpuNode } from './gpu-nodes.ts';
import { deviceIndex } from '../cached.ts';
import { check, named, type Problem, quoted } from '../finding.ts';

function problem(pool: string, rest: Omit<Problem, 'objects'>): Problem {
  return { objects: [`gpupool/${pool}`], ...rest };
}

/** Whether another pool of as many labels selects a node too: then the names alone decide. */
function overlaps(pools: readonly Pool[], nodes: readonly Node[]): Problem[] {
  const found = new Map<string, { winner: string; loser: string; nodes: string[] }>();
  for (const { metadata } of nodes) {
    const labels = metadata.labels ?? {};
    const all = pools.filter(({ spec }) =>
      Object.entries(spec.nodeSelector).every(([key, value]) => labels[key] === value),
    );
    const [first, second] = all;
    if (first === undefined || second === undefined) continue;
    const asked = [first, second].map(({ spec }) => Object.keys(spec.nodeSelector).length);
    if (asked[0] !== asked[1]) continue;
    const key = `${first.name} ${second.name}`;
    const known = found.get(key) ?? { winner: first.name, loser: second.name, nodes: [] };
    found.set(key, { ...known, nodes: [...known.nodes, metadata.name] });
  }
  return [...found.values()].map(({ winner, loser, nodes: both }) => ({
    severity: 'warning',
    reason: 'Overlap',
    objects: [`gpupool/${winner}`, `gpupool/${loser}`],
    message: `GPUPools ${winner} and ${loser} select node ${named(both)} with as many labels, so ${winner} has it by its name.`,
    why: `Prices, sizes and tolerations of ${loser} do not hold there.`,
    remedy: `kubectl edit gpupool ${loser}   # change or add a label of spec.nodeSelector`,
  }));
}

function unused(pool: Pool): Problem[] {
  return [
    problem(pool.name, {
      severity: 'warning',
      reason: 'NoNodes',
      message: `GPUPool ${pool.name} selects no node with GPUs.`,
      why: 'It offers nothing.',
      remedy: `kubectl edit gpupool ${pool.name}   # or label nodes as spec.nodeSelector asks`,
    }),
  ];
}

function prices(pool: Pool, own: readonly NodeFacts[]): Problem[] {
  const products = new Map(own.flatMap(({ resources }) => resources.map((one) => [one.product, one] as const)));
  const free = [...products.values()].filter((one) => compareMoney(priceOf(pool, one).onDemand, '0') === 0);
  return free.slice(0, 1).map(() => {
    const names = free.map(({ product }) => product).toSorted();
    const price = JSON.stringify([
      { op: 'add', path: '/spec/prices/-', value: { product: names[0], onDemand: '1.00', interruptible: '0.50' } },
    ]);
    return problem(pool.name, {
      severity: 'warning',
      reason: 'NoPrice',
      message: `GPUPool ${pool.name} has no price for ${named(names)}.`,
      why: 'They are rented out for nothing, and no budget of money holds anybody back.',
      remedy: `kubectl patch gpupool ${pool.name} --type json -p ${quoted(price)}   # with your prices`,
    });
  });
}

function storage(pool: Pool, own: readonly NodeFacts[], classes: readonly StorageClass[]): Problem[] {
  const { storageClassName: wanted } = pool.spec.disk;
  if (storageClassOf(pool.spec, classes) !== undefined || own.every(({ simulated }) => simulated)) return [];
  const remedy = 'kubectl get storageclasses';
  const why = 'Disks of instances are folders of their node, and are lost when an instance stops.';
  if (wanted === undefined)
    return [
      problem(pool.name, {
        severity: 'warning',
        reason: 'NoStorageClass',
        message: `GPUPool ${pool.name} names no StorageClass, and the cluster has no default one.`,
        why,
        remedy,
      }),
    ];
  return [
    problem(pool.name, {
      severity: 'error',
      reason: 'StorageClassMissing',
      message: `GPUPool ${pool.name} names StorageClass ${wanted}, which does not exist.`,
      why,
      remedy,
    }),
  ];
}

function runtimeClass(pool: Pool, classes: ReadonlySet<string>): Problem[] {
  const { runtimeClassName: wanted } = pool.spec;
  if (wanted === undefined || classes.has(wanted)) return [];
  return [
    problem(pool.name, {
      severity: 'error',
      reason: 'RuntimeClassMissing',
      message: `GPUPool ${pool.name} names RuntimeClass ${wanted}, which does not exist.`,
      why: 'The API server refuses every pod of the pool, so its instances stay pending with PodRejected.',
      remedy: 'kubectl get runtimeclasses',
    }),
  ];
}

function noPools(pools: readonly GpuPool[], facts: readonly NodeFacts[]): Problem[] {
  if (pools.length > 0 || !facts.some(({ resources }) => resources.length > 0)) return [];
  return [
    {
      severity: 'error',
      reason: 'NoPools',
      objects: [],
      message: 'There is no GPUPool: nothing is offered.',
      why: 'A GPUPool says which nodes are for rent, for how much and in which sandbox. Running instances keep running at the price of their claim.',
      remedy: 'kubectl apply -f deploy/samples/gpupool.yaml   # with your prices and labels',
    },
  ];
}

export const poolSettings = check({
  name: 'pools',
  title: 'GPUPools have nodes, prices, and classes that exist',
  needs: ['nodes', 'pools', 'storageClasses', 'runtimeClasses', 'resourceSlices', 'deviceClasses'],
  find({ nodes, pools, storageClasses, runtimeClasses, ...devices }) {
    const ordered = orderPools(pools);
    const index = deviceIndex(devices);
    const facts = nodes.map((node) => nodeFacts(node, ordered, index.of(node.metadata.name)));
    const missing = noPools(pools, facts);
    if (pools.length === 0) return missing;
    const known = new Set(runtimeClasses.map(({ metadata }) => metadata.name));
    const withGpus = nodes.filter((node, index) => {
      return looksLikeGpuNode(node) || (facts[index]?.resources.length ?? 0) > 0;
    });
    const used = new Set(withGpus.map((node) => poolOf(node, ordered, index.of(node.metadata.name))?.name));
    return [
      ...overlaps(ordered, withGpus),
      ...ordered.flatMap((pool) => {
        const own = facts.filter((one) => one.pool?.name === pool.name && one.resources.length > 0);
        // The check of devices says what is wrong with a class.
        const isTold = deviceClassNamesOf(pool.spec.devices).some((name) => index.gapOf(name) !== undefined);
        const empty = used.has(pool.name) || isTold ? [] : unused(pool);
        return [...empty, ...prices(pool, own), ...storage(pool, own, storageClasses), ...runtimeClass(pool, known)];
      }),
    ];
  },
});
