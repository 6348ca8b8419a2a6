import { afterAll, beforeAll, expect, it } from 'vitest';
import { NAMESPACES } from '../../../src/kube/types.ts';
import { GPU_POOLS } from '../../../src/resources/gpu-pool.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { BERTH_EDIT, clusterAccount } from '../../support/accounts.ts';
import { type DashboardView, openDashboard, signOut } from '../../support/dashboard-view.ts';
import { type DashboardWorld, dashboardWorld } from '../../support/dashboard-world.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { describeWith } from '../../support/needs.ts';
import { waitFor } from '../../support/wait-for.ts';

const PRODUCT = 'NVIDIA-PRICED-TEST';
const LOOKS = [
  { apiGroups: [''], resources: ['nodes', 'pods'], verbs: ['list'] },
  { apiGroups: ['berth.dev'], resources: ['gpupools', 'gpuinstances', 'tenantlimits'], verbs: ['list'] },
];
const SETS = [...LOOKS, { apiGroups: ['berth.dev'], resources: ['gpupools'], verbs: ['patch'] }];

let world: DashboardWorld;
let client: DashboardWorld['tenant']['client'];
let pool: string;
/** Another tenant. */
let rivals: string;
let removeNode: () => Promise<void>;
let looker: Awaited<ReturnType<typeof clusterAccount>>;
let setter: Awaited<ReturnType<typeof clusterAccount>>;

beforeAll(async () => {
  world = await dashboardWorld();
  ({ client } = world.tenant);
  const { name } = world.tenant;
  [pool, rivals] = [`${name}-pool`, `${name}-rivals`];
  // A pool with more labels than that of the cluster has the node.
  const nodeSelector = { 'nvidia.com/gpu.present': 'true', 'nvidia.com/gpu.product': PRODUCT };
  const prices = [{ product: '*', onDemand: '1.50', interruptible: '0.75' }];
  await client.create(GPU_POOLS, { metadata: { name: pool }, spec: { nodeSelector, prices } } as never);
  await client.create(NAMESPACES, { metadata: { name: rivals } });
  removeNode = await addNode(client, gpuNode(`${name}-node`, PRODUCT, 4));
  looker = await clusterAccount(client, name, 'looker', { rules: BERTH_EDIT, everywhere: LOOKS });
  setter = await clusterAccount(client, name, 'setter', { rules: BERTH_EDIT, everywhere: SETS });
}, 120_000);

afterAll(async () => {
  await client.delete(NAMESPACES, { name: rivals });
  await waitFor(
    'the GPUs of the other tenant to be given back',
    async () => (await client.list(GPU_INSTANCES, { namespace: rivals })).items.length === 0,
    90_000,
  );
  await client.delete(GPU_POOLS, { name: pool });
  await removeNode();
  for (const one of [looker, setter]) await one.remove();
  await world[Symbol.asyncDispose]();
});

function rent(namespace: string, name: string, type: 'OnDemand' | 'Interruptible'): Promise<unknown> {
  const spec = { gpu: { product: PRODUCT, count: 4 }, type };
  return client.create(GPU_INSTANCES, { metadata: { namespace, name }, spec } as never);
}

describeWith('chromium')('an operator in the page', () => {
  let view: DashboardView;

  beforeAll(async () => {
    view = await openDashboard(world.api.url);
  });
  afterAll(() => view[Symbol.asyncDispose]());

  async function open(): Promise<void> {
    await view.page.getByRole('button', { name: `Change the prices of ${pool}` }).click();
    await view.page.getByRole('heading', { name: `Prices of ${pool}` }).waitFor();
  }

  const card = () => view.page.getByRole('listitem').filter({ has: view.page.getByRole('heading', { name: pool }) });
  const dialog = () => view.page.locator('#pool');

  it('who may only look gets the line for kubectl', async () => {
    const { page } = view;
    await view.signIn(looker.token, '/fleet');
    await card().getByText('Change the prices').click();
    await card().getByText(`kubectl patch gpupool ${pool}`).waitFor();
    expect(await page.getByRole('button', { name: /^Change the prices/ }).count()).toBe(0);
    const body = { version: `${crypto.randomUUID()}/1`, currency: 'USD', sizes: [1], prices: [] };
    const headers = { 'x-berth-dashboard': '1' };
    const url = `${world.api.url}/dashboard/api/pools/${pool}`;
    const refused = await page.context().request.patch(url, { headers, data: body });
    expect([refused.status(), await refused.text()]).toEqual([403, expect.stringContaining('may not patch gpupools')]);
    await signOut(page);
  });

  it('sets prices, with the words of the API for what is wrong', async () => {
    const { page } = view;
    await view.signIn(setter.token, '/fleet');
    await open();
    // Not of the prices: somebody rents or gives back.
    await client.patch(GPU_POOLS, { name: pool }, { status: { free: 0 } }, { type: 'merge', subresource: 'status' });
    await dialog().getByLabel('On demand').fill('-3');
    await dialog().getByLabel('GPUs of one instance').fill('1, 2, 4');
    await dialog().getByRole('button', { name: 'Add a price' }).click();
    const second = dialog().getByRole('group', { name: 'Price 2' });
    await second.getByLabel('GPU', { exact: true }).fill(PRODUCT);
    await second.getByLabel('On demand').fill('3.25');
    await dialog().getByRole('button', { name: 'Save' }).click();
    await dialog().locator('#on-demand-0-help.wrong').waitFor();
    expect(await view.findings()).toEqual([]);
    await view.picture('fleet-prices');
    await dialog().getByRole('group', { name: 'Price 1' }).getByLabel('On demand').fill('1.5');
    await dialog().getByRole('button', { name: 'Save' }).click();
    await card().getByText('$3.25').waitFor();
    await card().getByText('For rent: 1, 2, 4 at once').waitFor();
    const { spec } = await client.get(GPU_POOLS, { name: pool });
    expect(spec).toMatchObject({
      sizes: [1, 2, 4],
      nodeSelector: { 'nvidia.com/gpu.product': PRODUCT },
      prices: [
        { product: '*', onDemand: '1.5', interruptible: '0.75' },
        { product: PRODUCT, onDemand: '3.25', interruptible: '0.50' },
      ],
    });
    await page.getByText('Prices saved').waitFor({ state: 'attached' });
  });

  it('does not overwrite what somebody else has changed', async () => {
    const { page } = view;
    await open();
    const theirs = [{ product: '*', onDemand: '9.00', interruptible: '4.50' }];
    await client.patch(GPU_POOLS, { name: pool }, { spec: { prices: theirs } }, { type: 'merge' });
    await dialog().getByRole('group', { name: 'Price 1' }).getByLabel('On demand').fill('1');
    await dialog().getByRole('button', { name: 'Save' }).click();
    await dialog().getByRole('alert').filter({ hasText: 'has changed since it was read' }).waitFor();
    await dialog().getByRole('button', { name: 'Cancel' }).click();
    await card().getByText('$9.00').waitFor();
    expect((await client.get(GPU_POOLS, { name: pool })).spec.prices).toEqual(theirs);
    expect(await page.locator('#pool').count()).toBe(0);
  });

  it('sees who displaced whom, which the one who lost the GPUs does not', async () => {
    const { page } = view;
    const { name: namespace } = world.tenant;
    await rent(namespace, 'spot', 'Interruptible');
    await page.getByRole('row', { name: new RegExp(`^${namespace} 4 1`) }).waitFor();
    await rent(rivals, 'secret-project', 'OnDemand');
    const displaced = page.getByRole('region', { name: /^Displaced/ }).getByRole('listitem');
    await displaced
      .filter({ hasText: `${namespace}/spot` })
      .getByText(`${rivals}/secret-project`)
      .waitFor();
    expect(await view.findings()).toEqual([]);
    await view.picture('fleet-displaced');
    const lost = await client.get(GPU_INSTANCES, { namespace, name: 'spot' });
    expect(lost.status?.ending?.reason).toBe('Preempted');
    expect(JSON.stringify(lost.status)).not.toMatch(/rivals|secret-project/);
  });

  it('breaks no policy', () => {
    expect(view.complaints.filter((text) => !/status of (?:401|409|422)/.test(text))).toEqual([]);
  });
});
