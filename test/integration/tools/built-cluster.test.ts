import { describe, expect, inject, it } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { NODES, STORAGE_CLASSES } from '../../../src/kube/types.ts';
import { waitFor } from '../../../tools/lib/wait.ts';

const cluster = inject('cluster');
const client = createKubeClient(await loadKubeConfig({ kubeconfig: cluster.kubeconfig }), { clock: systemClock() });

async function readyNodes(): Promise<string[]> {
  const { items } = await client.list(NODES);
  return items
    .filter(({ status }) => status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'))
    .map(({ metadata }) => metadata.name);
}

describe('the local cluster', () => {
  it('has a fleet whose live nodes are Ready and whose dead node is not', async () => {
    const ready = await waitFor(
      async () => {
        const names = await readyNodes();
        return names.filter((name) => name.startsWith('sim-')).length === 8 && names;
      },
      { timeout: 90_000 },
    );
    expect(ready).toBeDefined();
    expect(ready).not.toContain('sim-h100-dead-0');
    const { items } = await client.list(NODES);
    expect(items.map(({ metadata }) => metadata.name)).toContain('sim-h100-dead-0');
  });

  it('gives nodes the resources that their labels promise', async () => {
    const mig = await client.get(NODES, { name: 'sim-a100-mig-0' });
    expect(mig.status?.allocatable).toMatchObject({ 'nvidia.com/gpu': '0', 'nvidia.com/mig-1g.10gb': '7' });
    expect(mig.metadata.labels).toMatchObject({
      'nvidia.com/mig.strategy': 'mixed',
      'nvidia.com/mig-1g.10gb.count': '7',
    });
    const shared = await client.get(NODES, { name: 'sim-t4-shared-0' });
    expect(shared.status?.allocatable).toMatchObject({ 'nvidia.com/gpu': '8' });
    expect(shared.metadata.labels).toMatchObject({ 'nvidia.com/gpu.product': 'Tesla-T4-SHARED' });
  });

  it('has a default storage class', async () => {
    const { items } = await client.list(STORAGE_CLASSES);
    const defaults = items.filter(
      ({ metadata }) => metadata.annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true',
    );
    expect(defaults.map(({ metadata }) => metadata.name)).toEqual(['berth-local']);
  });
});
