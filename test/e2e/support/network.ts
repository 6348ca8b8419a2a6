import type { Pod } from '../../../src/kube/types.ts';
import { SERVICES } from '../../../src/kube/types.ts';
import { NAMESPACE, TENANT } from './release.ts';
import type { World } from './world.ts';

/** Whether a pod can open a connection: any answer of HTTP will do, a refusal too; silence is a closed network. */
async function reaches(world: World, { metadata }: Pod, url: string): Promise<boolean> {
  const wget = ['wget', '-T', '3', '-O', '/dev/null', url];
  const { code, stderr } = await world.kubectl(['exec', '-n', metadata.namespace ?? '', metadata.name, '--', ...wget]);
  if (code === 0 || stderr.includes('server returned error')) return true;
  if (stderr.includes('timed out')) return false;
  throw new Error(`wget from ${metadata.namespace}/${metadata.name} to ${url}: ${stderr}`);
}

/** What a pod may want to reach. */
export interface Reach {
  /** A model server in the namespace of the tenant. */
  model: boolean;
  /** The metrics of one of Berth's own pods. */
  metrics: boolean;
  /** The API server. */
  cluster: boolean;
}

/** What a pod reaches of the tenant and of the cluster. */
export async function reachOf(world: World, pod: Pod): Promise<Reach> {
  const model = await world.pod(TENANT, 'app=model');
  const api = await world.pod(NAMESPACE, 'app.kubernetes.io/component=api');
  const { spec } = await world.client.get(SERVICES, { namespace: 'default', name: 'kubernetes' });
  const [toModel, toMetrics, toCluster] = await Promise.all([
    reaches(world, pod, `http://${model.status?.podIP}:8000/health`),
    reaches(world, pod, `http://${api.status?.podIP}:9090/metrics`),
    reaches(world, pod, `http://${spec?.clusterIP}:443/`),
  ]);
  return { model: toModel, metrics: toMetrics, cluster: toCluster };
}
