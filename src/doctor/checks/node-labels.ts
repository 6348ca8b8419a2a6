import { toAmounts } from '../../inventory/amounts.ts';
import type { GpuResource } from '../../inventory/nodes/gpu-labels.ts';
import { gpuResourcesOf } from '../../inventory/nodes/gpu-labels.ts';
import type { Node } from '../../kube/types.ts';
import { byFault, check, firstOf, named, type Problem } from '../finding.ts';

const GPU = 'nvidia.com/gpu';
/** The one word that feature discovery's absence leaves of a product. */
const NO_PRODUCT = 'GPU';

interface Fault {
  reason: string;
  severity: 'error' | 'warning';
  message: string;
  why: string;
  remedy: (words: string) => string;
}

const DISCOVERY = 'kubectl get pods --all-namespaces -o wide -l app=gpu-feature-discovery';

function namesFault(resources: readonly GpuResource[]): Fault | undefined {
  if (resources.some(({ product }) => product.split('-MIG-', 1)[0] === NO_PRODUCT))
    return {
      reason: 'NoProduct',
      severity: 'warning',
      message: 'GPUs are there, and the label nvidia.com/gpu.product is not',
      why: `Their offers say "${NO_PRODUCT}", and get the price of *. GPU Feature Discovery writes the label.`,
      remedy: () => DISCOVERY,
    };
  if (resources.some(({ memoryMb }) => memoryMb === 0))
    return {
      reason: 'NoMemory',
      severity: 'warning',
      message: 'no label tells the memory of the GPUs, such as nvidia.com/gpu.memory',
      why: 'Their offers have 0 MiB, and requests for an amount of memory never get them. GPU Feature Discovery writes the label.',
      remedy: () => DISCOVERY,
    };
  return undefined;
}

function migFault(labels: Readonly<Record<string, string>>, resources: readonly GpuResource[]): Fault | undefined {
  const strategy = labels['nvidia.com/mig.strategy'];
  const slices = resources.some(({ resourceName }) => resourceName.startsWith('nvidia.com/mig-'));
  if (labels['nvidia.com/mig.config.state'] === 'failed')
    return {
      reason: 'MIGConfigFailed',
      severity: 'error',
      message: `the MIG manager could not apply the layout ${labels['nvidia.com/mig.config'] ?? ''}`,
      why: 'The node offers the layout that it had before, or nothing.',
      remedy: () => 'kubectl logs --all-containers --prefix -n gpu-operator -l app=nvidia-mig-manager --tail=50',
    };
  if (slices && strategy !== undefined && strategy !== 'mixed')
    return {
      reason: 'MIGStrategy',
      severity: 'warning',
      message: `there are MIG resources, and the label nvidia.com/mig.strategy says ${strategy}`,
      why: 'The device plugin and GPU Feature Discovery run with different strategies, so products and memory of the offers are wrong.',
      remedy: () =>
        'helm upgrade gpu-operator nvidia/gpu-operator --namespace gpu-operator --reuse-values --set mig.strategy=mixed',
    };
  return undefined;
}

/** What feature discovery counted against what the device plugin has. Replicas and slices are counted otherwise. */
function countFault(node: Node, resources: readonly GpuResource[]): Fault | undefined {
  const labels = node.metadata.labels ?? {};
  const counted = Number(labels['nvidia.com/gpu.count']);
  const have = toAmounts(node.status?.capacity)[GPU];
  const isPlain = resources.length === 1 && resources[0]?.isolation === 'whole';
  if (!isPlain || have === undefined || !(counted > 0) || counted === have) return undefined;
  return {
    reason: 'CountDiffers',
    severity: 'warning',
    message: `the label nvidia.com/gpu.count says ${counted}, and the device plugin has ${have} GPUs`,
    why: 'A GPU has fallen off the bus, or one of the two is out of date.',
    remedy: (words) => `kubectl describe node ${words}`,
  };
}

function faultsOf(node: Node): Fault[] {
  const resources = gpuResourcesOf(node).filter(({ resourceName }) => resourceName.startsWith('nvidia.com/'));
  if (resources.length === 0) return [];
  const found = [namesFault(resources), migFault(node.metadata.labels ?? {}, resources), countFault(node, resources)];
  return found.filter((fault) => fault !== undefined);
}

export const nodeLabels = check({
  name: 'node-labels',
  title: 'Labels of nodes agree with their GPUs',
  needs: ['nodes'],
  find({ nodes }) {
    const found = nodes.flatMap((node) =>
      faultsOf(node).map((fault) => [fault.reason + fault.message, { fault, name: node.metadata.name }] as const),
    );
    return [...byFault(found).values()].flatMap((group): Problem[] => {
      const [first] = group;
      if (first === undefined) return [];
      const names = group.map(({ name }) => name).toSorted();
      const { remedy, message, ...rest } = first.fault;
      const who = `${names.length === 1 ? 'Node' : 'Nodes'} ${named(names)}`;
      const objects = names.map((name) => `node/${name}`);
      return [{ ...rest, objects, message: `${who}: ${message}.`, remedy: remedy(firstOf(names).words) }];
    });
  },
});
