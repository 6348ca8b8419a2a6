import { nodeFacts } from '../../inventory/nodes/node-view.ts';
import { poolIsolation } from '../../inventory/pool-isolation.ts';
import { orderPools } from '../../inventory/pools.ts';
import { deviceIndex } from '../cached.ts';
import { check, firstOf, type Problem } from '../finding.ts';

const CONFIRM = 'berth.dev/gpu-isolation=enforced';

/** The same judgement as the condition Isolated of a GPUPool. */
export const isolation = check({
  name: 'isolation',
  title: 'Tenants cannot widen their GPUs',
  needs: ['nodes', 'pools', 'resourceSlices', 'deviceClasses'],
  find({ nodes, pools, ...devices }) {
    const ordered = orderPools(pools);
    const index = deviceIndex(devices);
    const facts = nodes.map((node) => nodeFacts(node, ordered, index.of(node.metadata.name)));
    return ordered.flatMap(({ name }): Problem[] => {
      const own = facts.filter(({ pool }) => pool?.name === name);
      const { reason, message } = poolIsolation(own);
      const objects = [`gpupool/${name}`];
      if (reason === 'SharedGPUs') {
        const why = 'An instance can read what another one left in the memory of the GPU, and stop it by a fault.';
        const remedy = `kubectl get gpupool ${name} -o jsonpath='{.status.conditions[?(@.type=="Isolated")].message}'`;
        return [{ severity: 'warning', reason, objects, message: `GPUPool ${name}: ${message}`, why, remedy }];
      }
      if (reason !== 'NotConfirmed') return [];
      const open = own.filter(({ simulated, resources, isGpuIsolationEnforced: is }) => {
        return !simulated && resources.length > 0 && !is;
      });
      const why =
        'By its default the container toolkit gives a container every GPU that its environment or its image names.';
      const { words } = firstOf(open.map((one) => one.name).toSorted());
      const remedy = `kubectl label node ${words} ${CONFIRM}   # after the check of docs/run/install.md said "none"`;
      return [{ severity: 'warning', reason, objects, message: `GPUPool ${name}: ${message}`, why, remedy }];
    });
  },
});
