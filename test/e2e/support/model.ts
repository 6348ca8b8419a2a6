import type { KubeClient } from '../../../src/kube/client/client.ts';
import { SERVICES } from '../../../src/kube/types.ts';
import { MODEL_IMAGE } from './images.ts';

const LABELS = { app: 'model' };

/** How the server scales from zero. It goes back to zero after the last test. */
const SCALE = {
  'berth.dev/scale-target': 'deployments.apps/model',
  'berth.dev/scale-idle-seconds': '7200',
  'berth.dev/model-names': 'tiny-random',
};

/**
 * Makes a Deployment of llama.cpp's server at zero replicas, behind a Service that Berth finds. Pod Security restricted
 * allows it.
 */
export async function deployModel(client: KubeClient, namespace: string): Promise<void> {
  const container = {
    name: 'server',
    image: MODEL_IMAGE,
    imagePullPolicy: 'Never',
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    ports: [{ containerPort: 8000 }],
    readinessProbe: { httpGet: { path: '/health', port: 8000 }, periodSeconds: 1 },
  };
  const spec = {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 1,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [container],
  };
  await client.raw('POST', `/apis/apps/v1/namespaces/${namespace}/deployments`, {
    metadata: { name: 'model' },
    spec: { replicas: 0, selector: { matchLabels: LABELS }, template: { metadata: { labels: LABELS }, spec } },
  });
  await client.create(SERVICES, {
    metadata: { namespace, name: 'model', labels: { 'berth.dev/model-server': 'true' }, annotations: SCALE },
    spec: { selector: LABELS, ports: [{ port: 80, targetPort: 8000 }] },
  });
}
