import { afterAll, beforeAll, expect, it } from 'vitest';
import { NAMESPACES, NODES, PODS } from '../../../src/kube/types.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { account, BERTH_EDIT, clusterAccount } from '../../support/accounts.ts';
import { type DashboardView, openDashboard } from '../../support/dashboard-view.ts';
import { type DashboardWorld, dashboardWorld } from '../../support/dashboard-world.ts';
import { createKey } from '../../../src/access/create-key.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { describeWith } from '../../support/needs.ts';
import { waitFor } from '../../support/wait-for.ts';

const PRODUCT = 'NVIDIA-FLEET-TEST';
/** What the whole cluster has of these is what the page shows. */
const OPERATOR = [
  { apiGroups: [''], resources: ['nodes', 'pods'], verbs: ['list'] },
  { apiGroups: ['berth.dev'], resources: ['gpupools', 'gpuinstances', 'tenantlimits'], verbs: ['list'] },
];

let world: DashboardWorld;
let tenant: DashboardWorld['tenant'];
let api: DashboardWorld['api'];
let node: string;
let removeNode: () => Promise<void>;
let operator: Awaited<ReturnType<typeof clusterAccount>>;
let renter: string;

beforeAll(async () => {
  world = await dashboardWorld();
  ({ tenant, api } = world);
  const { name: namespace, client } = tenant;
  node = `${namespace}-node`;
  removeNode = await addNode(client, gpuNode(node, PRODUCT, 4));
  operator = await clusterAccount(client, namespace, 'operator', { rules: BERTH_EDIT, everywhere: OPERATOR });
  renter = await account(client, namespace, 'renter', BERTH_EDIT);
});

afterAll(async () => {
  await removeNode();
  await operator.remove();
  const { client } = tenant;
  for (const [word] of OTHERS) await client.delete(NAMESPACES, { name: otherTenant(word) });
  // Their GPUs are those of other tests, and the controller of this test gives them back.
  const others = new Set(OTHERS.map(([word]) => otherTenant(word)));
  await waitFor(
    'the GPUs of the other tenants to be given back',
    async () => {
      const { items } = await client.list(GPU_INSTANCES, {});
      return !items.some(({ metadata }) => others.has(metadata.namespace ?? ''));
    },
    90_000,
  );
  await world[Symbol.asyncDispose]();
});

/** Other tenants, and what they have: product and number. */
const OTHERS = [
  ['vision', 'NVIDIA-H100-80GB-HBM3', 8],
  ['speech', 'NVIDIA-A100-SXM4-80GB', 4],
  ['robots', 'NVIDIA-A100-SXM4-80GB', 2],
  ['search', 'NVIDIA-L40S', 1],
] as const;

function otherTenant(word: string): string {
  return `${word}-${tenant.name.slice(-4)}`;
}

function rent(name: string, count: number, product = PRODUCT, namespace = tenant.name): Promise<unknown> {
  const metadata = { name, namespace };
  return tenant.client.create(GPU_INSTANCES, { metadata, spec: { gpu: { product, count } } } as never);
}

/** Writes what a kubelet does when the device plugin says that one of the GPUs of an instance is unhealthy. */
async function failGPU(id: string, gpu: string): Promise<void> {
  const { client, name: namespace } = tenant;
  const ref = { namespace, name: `${id}-1` };
  await waitFor('the pod to run', async () => (await client.get(PODS, ref)).status?.phase === 'Running');
  const options = { type: 'strategic', subresource: 'status' } as const;
  const resources = [{ resourceID: gpu, health: 'Unhealthy' }];
  const main = { name: 'main', allocatedResourcesStatus: [{ name: 'nvidia.com/gpu', resources }] };
  await client.patch(PODS, ref, { status: { containerStatuses: [main] } }, options);
  await client.patch(NODES, { name: node }, { status: { allocatable: { 'nvidia.com/gpu': '3' } } }, options);
}

async function personToken(kubernetes: string): Promise<{ token: string; scopes: string[] }> {
  const headers = { 'content-type': 'application/json', 'x-berth-dashboard': '1' };
  const base = `${api.url}/dashboard/api`;
  const signedIn = await fetch(`${base}/session`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ token: kubernetes }),
  });
  const cookie = signedIn.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
  const body = JSON.stringify({ namespace: tenant.name });
  const answer = await fetch(`${base}/token`, { method: 'POST', headers: { ...headers, cookie }, body });
  return (await answer.json()) as { token: string; scopes: string[] };
}

it("a tenant's key and a tenant's person see nothing of the fleet", async () => {
  const { token: key } = await createKey(tenant.client, { namespace: tenant.name });
  const person = await personToken(renter);
  expect(person.scopes).toEqual(['compute:read', 'compute:write']);
  for (const token of [key, person.token]) {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await waitFor('a key that is known', async () => {
      const got = await fetch(`${api.url}/api/v1/fleet`, { headers });
      return got.status !== 401 && got;
    });
    expect(answer.status).toBe(403);
    expect(await answer.text()).not.toContain(node);
  }
});

it('the API server lets no tenant write the scope into a key', async () => {
  const path = `/apis/berth.dev/v1alpha1/namespaces/${tenant.name}/apikeys`;
  const spec = { hash: 'a'.repeat(64), scopes: ['fleet:read'] };
  const key = { apiVersion: 'berth.dev/v1alpha1', kind: 'APIKey', metadata: { name: 'cheat' }, spec };
  await expect(tenant.client.raw('POST', path, key)).rejects.toThrow(/spec.scopes/);
});

describeWith('chromium')('in a browser', () => {
  let view: DashboardView;

  beforeAll(async () => {
    view = await openDashboard(api.url);
  });
  afterAll(() => view[Symbol.asyncDispose]());

  it('an operator sees each GPU, who has it, who waits and why, as it changes', async () => {
    const { page, findings, picture } = view;
    await view.signIn(operator.token);
    await page.getByRole('link', { name: 'Fleet' }).click();
    const cell = page.getByRole('option', { name: `${node}: ` });
    await cell.click();
    const card = page.getByRole('region', { name: node, exact: true });
    await card.getByRole('img', { name: '4 GPUs: 0 rented, 4 free' }).waitFor();
    await rent('first', 2);
    await card.getByRole('img', { name: '4 GPUs: 2 rented, 2 free' }).waitFor();
    await failGPU('first', 'GPU-77');
    await card.getByRole('img', { name: '4 GPUs: 2 rented, 1 free, 1 out of service' }).waitFor();
    await card.getByTitle(`${tenant.name}/first: running. GPU GPU-77 is unhealthy`).waitFor();
    await rent('second', 4);
    for (const [word, product, count] of OTHERS) {
      await tenant.client.create(NAMESPACES, { metadata: { name: otherTenant(word) } });
      await rent('work', count, product, otherTenant(word));
      await page.getByRole('row', { name: new RegExp(`^${otherTenant(word)} ${count} `) }).waitFor();
    }
    const line = page.getByRole('region', { name: /^Waiting for GPUs/ });
    await line.getByRole('link', { name: `${tenant.name}/second` }).waitFor();
    await tenant.client.patch(NODES, { name: node }, { spec: { unschedulable: true } }, { type: 'merge' });
    await card.getByText('Cordoned', { exact: true }).waitFor();
    await card.getByRole('img', { name: '4 GPUs: 2 rented, 0 free, 1 on closed nodes, 1 out of service' }).waitFor();
    expect(await cell.getAttribute('aria-label')).toMatch(/: Cordoned · 4 GPUs: 2 rented, .* · added just now$/);
    for (const look of ['Load', 'Health', 'Age', 'Tenant']) {
      await page.getByRole('radio', { name: look }).check();
      expect(await findings()).toEqual([]);
    }
    await picture('fleet');
  });

  it('shows only the nodes with trouble, and leads to an instance of any tenant', async () => {
    const { page } = view;
    await page.getByLabel('Only with trouble').check();
    await page.getByPlaceholder('Node, pool or GPU').fill(PRODUCT);
    expect(await page.getByRole('option').count()).toBe(1);
    await page.getByRole('link', { name: `${tenant.name}/first` }).click();
    await page.getByRole('heading', { level: 1, name: 'first' }).waitFor();
  });

  it('loads nothing from elsewhere and breaks no policy', () => {
    const { requested, complaints } = view;
    expect(requested.filter((url) => !url.startsWith(api.url) && !url.startsWith('data:'))).toEqual([]);
    expect(complaints.filter((text) => !text.includes('status of 401'))).toEqual([]);
  });
});
