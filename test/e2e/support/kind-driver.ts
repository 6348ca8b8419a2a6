import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { systemClock } from '../../../src/lib/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { NODES } from '../../../src/kube/types.ts';
import { AUDIT_POLICY } from '../../../tools/cluster/built/config-files.ts';
import type { run as runProgram } from '../../../tools/lib/shell.ts';
import type { Driver } from './driver.ts';

const NAME = 'berth-e2e';
const INSIDE = '/var/log/berth-audit';

/** The configuration of kind: a node whose API server writes its audit log into a folder of the host. */
export function kindConfig(folder: string): object {
  const mount = { name: 'audit', hostPath: INSIDE, mountPath: INSIDE };
  const clusterConfiguration = {
    kind: 'ClusterConfiguration',
    apiServer: {
      extraArgs: [
        { name: 'audit-policy-file', value: `${INSIDE}/policy.yaml` },
        { name: 'audit-log-path', value: `${INSIDE}/audit.log` },
      ],
      extraVolumes: [mount],
    },
  };
  return {
    kind: 'Cluster',
    apiVersion: 'kind.x-k8s.io/v1alpha4',
    nodes: [
      {
        role: 'control-plane',
        kubeadmConfigPatches: [stringify(clusterConfiguration)],
        extraMounts: [{ hostPath: folder, containerPath: INSIDE }],
      },
    ],
  };
}

/** A kind cluster. `run` runs the program kind. */
export function kindDriver(run: typeof runProgram): Driver {
  return async ({ state, signal }) => {
    async function kind(...args: string[]): Promise<void> {
      const { code, stderr } = await run('kind', args, { signal });
      if (code !== 0) throw new Error(`kind ${args[0] ?? ''} failed: ${stderr.slice(-1000)}`);
    }
    const folder = join(state, 'audit');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'policy.yaml'), stringify(AUDIT_POLICY));
    await writeFile(join(state, 'kind.yaml'), stringify(kindConfig(folder)));
    const kubeconfig = join(state, 'kubeconfig');
    await kind(
      'create',
      'cluster',
      '--name',
      NAME,
      '--config',
      join(state, 'kind.yaml'),
      '--kubeconfig',
      kubeconfig,
      '--wait',
      '120s',
    );
    const client = createKubeClient(await loadKubeConfig({ kubeconfig }), { clock: systemClock() });
    const { items } = await client.list(NODES);
    const name = items[0]?.metadata.name ?? '';
    const labels = {
      'nvidia.com/gpu.product': 'NVIDIA-L4',
      'nvidia.com/gpu.count': '2',
      'nvidia.com/gpu.memory': '23034',
    };
    await client.patch(NODES, { name }, { metadata: { labels } }, { type: 'merge' });
    const gpus = { 'nvidia.com/gpu': '2' };
    const status = { capacity: gpus, allocatable: gpus };
    await client.patch(NODES, { name }, { status }, { type: 'strategic', subresource: 'status' });
    return {
      kubeconfig,
      client,
      loadImage: (archive) => kind('load', 'image-archive', archive, '--name', NAME),
      kubectl: 'kubectl',
      auditLog: join(folder, 'audit.log'),
      stop: async () => {
        await client.close();
        await kind('delete', 'cluster', '--name', NAME, '--kubeconfig', kubeconfig);
      },
    };
  };
}
