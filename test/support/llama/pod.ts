import type { KubeClient } from '../../../src/kube/client/client.ts';
import { type KubeObject, type Pod, PODS, type ResourceType, SERVICES } from '../../../src/kube/types.ts';
import { importImage, type NodeAccess } from '../../../tools/lib/images/image.ts';
import { waitFor } from '../wait-for.ts';
import { llamaImage, LLAMA_PORT } from './image.ts';

const IMAGE = 'localhost/berth-llama:test';

const CONTAINER = {
  name: 'server',
  image: IMAGE,
  imagePullPolicy: 'Never',
  ports: [{ containerPort: LLAMA_PORT }],
  readinessProbe: { httpGet: { path: '/health', port: LLAMA_PORT }, periodSeconds: 1 },
};

export interface Deployment extends KubeObject {
  spec?: { replicas?: number } & Record<string, unknown>;
}

export const DEPLOYMENTS: ResourceType<Deployment> = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
};

export interface LlamaPodOptions {
  node: NodeAccess;
  /** Name of the node that runs real containers. */
  nodeName: string;
  namespace: string;
  /** Annotations of the labelled Services in front of it, by name. */
  services: Readonly<Record<string, Record<string, string>>>;
  /** Parameters of llama.cpp, as `startLlama` takes them. */
  parameters?: Readonly<Record<string, unknown>>;
}

/** Runs llama.cpp's server in a pod on the real node, behind labelled Services. It goes with its namespace. */
export async function runLlamaPod(client: KubeClient, options: LlamaPodOptions): Promise<void> {
  const { node, nodeName, namespace, services, parameters = {} } = options;
  await importImage(node, await llamaImage(IMAGE));
  const labels = { app: 'llama' };
  for (const [name, annotations] of Object.entries(services)) {
    await client.create(SERVICES, {
      metadata: { namespace, name, labels: { 'berth.dev/model-server': 'true' }, annotations },
      spec: { selector: labels, ports: [{ name: 'http', port: 80, targetPort: LLAMA_PORT }] },
    });
  }
  await client.create(PODS, {
    metadata: { namespace, name: 'llama', labels },
    spec: {
      nodeName,
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      containers: [{ ...CONTAINER, env: [{ name: 'LLAMA_PARAMETERS', value: JSON.stringify(parameters) }] }],
    },
  });
  let status: Pod['status'];
  const ready = async (): Promise<boolean | undefined> => {
    ({ status } = await client.get(PODS, { namespace, name: 'llama' }));
    return status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True');
  };
  await waitFor('the pod to be ready', ready, 120_000).catch((error: unknown) => {
    throw new Error(`The pod did not become ready: ${JSON.stringify(status)}`, { cause: error });
  });
}

/** A Deployment of llama.cpp's server with one GPU for each replica, at zero replicas, on the real node. */
export async function deployLlama(
  client: KubeClient,
  { node, nodeName, namespace, name }: Omit<LlamaPodOptions, 'services' | 'parameters'> & { name: string },
): Promise<void> {
  await importImage(node, await llamaImage(IMAGE));
  const labels = { app: name };
  await client.create(DEPLOYMENTS, {
    metadata: { namespace, name },
    spec: {
      replicas: 0,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          nodeSelector: { 'kubernetes.io/hostname': nodeName },
          terminationGracePeriodSeconds: 1,
          automountServiceAccountToken: false,
          containers: [{ ...CONTAINER, resources: { limits: { 'nvidia.com/gpu': 1 } } }],
        },
      },
    },
  });
}
