import type { KubeClient } from '../../../src/kube/client/client.ts';
import { NAMESPACES, SERVICES } from '../../../src/kube/types.ts';
import { TOKEN_RECORDS, type TokenRecord } from '../../../src/resources/token-record.ts';
import { waitFor } from '../../support/wait-for.ts';
import type { Tenant } from './http.ts';
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

const PRICES = {
  'berth.dev/shared': 'true',
  'berth.dev/price-input': '1.00',
  'berth.dev/price-output': '2.00',
  'berth.dev/price-currency': 'EUR',
};

async function mark(client: KubeClient, namespace: string, value: string | null): Promise<void> {
  const labels = { 'berth.dev/shared-models': value, 'berth.dev/priced-models': value };
  await client.patch(NAMESPACES, { name: namespace }, { metadata: { labels } }, { type: 'merge' });
}

/**
 * Shares the model of a namespace at a price while another tenant calls it once.
 *
 * @returns the record of what that cost
 */
export async function callAtPrice(
  client: KubeClient,
  { namespace, caller, tenant }: { namespace: string; caller: string; tenant: Tenant },
): Promise<TokenRecord['spec']> {
  await client.patch(SERVICES, { namespace, name: 'model' }, { metadata: { annotations: PRICES } }, { type: 'merge' });
  await mark(client, namespace, 'true');
  const question = { model: 'tiny-random', messages: [{ role: 'user', content: 'Say hello' }], max_tokens: 8 };
  await waitFor('the model answers the other tenant', async () => {
    const { body } = await tenant.call('GET', '/api/v1/models');
    if (!JSON.stringify(body).includes('price_per_million_tokens')) return false;
    return (await tenant.call('POST', '/api/v1/chat/completions', question)).status === 200;
  });
  const spec = await waitFor('the record of the call', async () => {
    return (await client.list(TOKEN_RECORDS, { namespace: caller })).items[0]?.spec;
  });
  await mark(client, namespace, null);
  return spec;
}
