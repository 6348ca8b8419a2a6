import type { KubeClient } from '../../../src/kube/client/client.ts';
import { SERVICES } from '../../../src/kube/types.ts';
import { MODEL_IMAGE } from './images.ts';

const LABELS = { app: 'model' };

/** Runs llama.cpp's server in the namespace behind a Service that Berth finds. Pod Security restricted allows it. */
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
    spec: { selector: { matchLabels: LABELS }, template: { metadata: { labels: LABELS }, spec } },
  });
  await client.create(SERVICES, {
    metadata: { namespace, name: 'model', labels: { 'berth.dev/model-server': 'true' } },
    spec: { selector: LABELS, ports: [{ port: 80, targetPort: 8000 }] },
  });
}
