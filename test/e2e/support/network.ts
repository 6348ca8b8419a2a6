import type { Pod } from '../../../src/kube/types.ts';
import { SERVICES } from '../../../src/kube/types.ts';
import { NAMESPACE, TENANT } from './release.ts';
import type { World } from './world.ts';

interface Place {
  host: string | undefined;
  port: number;
}

/** Whether a pod with a shell gets any answer from an HTTP server. */
async function reaches(world: World, { metadata }: Pod, { host, port }: Place): Promise<boolean> {
  const ask = `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 ${host} ${port}`;
  const { namespace = '', name } = metadata;
  const { stdout, stderr } = await world.kubectl(['exec', '-n', namespace, name, '-c', 'main', '--', 'sh', '-c', ask]);
  if (stdout.startsWith('HTTP/')) return true;
  // A policy is enforced by a refusal, or by no answer.
  if (/refused|timed out/.test(stderr)) return false;
  throw new Error(`from ${namespace}/${name} to ${host}:${port}: ${stdout}${stderr}`);
}

/** Which of these a pod reaches. */
export interface Reach {
  /** A model server in the namespace of the tenant. */
  model: boolean;
  /** The same by a port of the node. */
  byNode: boolean;
  /** The metrics of one of Berth's own pods. */
  metrics: boolean;
  /** The API server. */
  cluster: boolean;
  /** Berth's HTTP interface, by its Service. */
  api: boolean;
  /** A pod of the dashboard, past the api role. */
  dashboard: boolean;
}

/** Opens a port of every node that leads to the model server. Returns where it is. */
async function byNodePort({ client }: World, { status }: Pod): Promise<Place> {
  const ports = [{ port: 8000, targetPort: 8000 }];
  const service = {
    metadata: { name: 'model-by-node', namespace: TENANT },
    spec: { type: 'NodePort', selector: { app: 'model' }, ports },
  };
  const { spec } = await client.apply(SERVICES, service, { fieldManager: 'e2e' });
  return { host: status?.hostIP, port: spec?.ports?.[0]?.nodePort ?? 0 };
}

/** Tries what a pod reaches of the tenant and of the cluster. */
export async function reachOf(world: World, pod: Pod): Promise<Reach> {
  const model = await world.pod(TENANT, 'app=model');
  const api = await world.pod(NAMESPACE, 'app.kubernetes.io/component=api');
  const dashboard = await world.pod(NAMESPACE, 'app.kubernetes.io/component=dashboard');
  const { spec } = await world.client.get(SERVICES, { namespace: 'default', name: 'kubernetes' });
  const [toModel, toNode, toMetrics, toCluster, toApi, toDashboard] = await Promise.all([
    reaches(world, pod, { host: model.status?.podIP, port: 8000 }),
    reaches(world, pod, await byNodePort(world, model)),
    reaches(world, pod, { host: api.status?.podIP, port: 9090 }),
    reaches(world, pod, { host: spec?.clusterIP, port: 443 }),
    reaches(world, pod, await world.service('berth-api')),
    reaches(world, pod, { host: dashboard.status?.podIP, port: 8080 }),
  ]);
  return { model: toModel, byNode: toNode, metrics: toMetrics, cluster: toCluster, api: toApi, dashboard: toDashboard };
}
