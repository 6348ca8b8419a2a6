import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { NotFoundError, PatchTestFailedError } from '../../../src/kube/errors.ts';
import { gpuPoolSpecSchema } from '../../../src/resources/gpu-pool.ts';
import { ROOT } from '../../../tools/lib/paths.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { type LoneDashboard, PAGE_HEADERS, startLoneDashboard } from '../../support/lone-dashboard.ts';

const CONFLICT = new PatchTestFailedError({ message: 'a test failed', status: 422, reason: 'Invalid' });
const GONE = new NotFoundError({ message: 'gone', status: 404, reason: 'NotFound' });
const PRICE = { product: '*', onDemand: '2.50', interruptible: '1' };
const UID = '7d444840-9dc0-11d1-b245-5ffdce74fad2';
const CHANGE = { version: `${UID}/7`, currency: 'EUR', sizes: [1, 2], prices: [PRICE] };

let dashboard: LoneDashboard;
let cookie: string;
/** What RBAC allows, and what it was asked. */
let isOperator: boolean;
let questions: unknown[];
/** What the API server was sent, and how it answers. */
let patches: { ref: unknown; body: unknown; type: unknown }[];
let answer: () => Promise<unknown>;

beforeEach(async () => {
  [isOperator, questions, patches] = [true, [], []];
  answer = () => Promise.resolve({ metadata: { name: 'all', uid: UID, generation: 8 } });
  const client = {
    raw: (_method: string, path: string, body: { spec: { resourceAttributes?: unknown } }) => {
      const user = { username: "o'neil" };
      if (path.endsWith('/tokenreviews')) {
        return Promise.resolve({ status: { authenticated: true, user, audiences: ['berth'] } });
      }
      questions.push(body.spec.resourceAttributes);
      return Promise.resolve({ status: { allowed: isOperator } });
    },
    patch: (_type: unknown, ref: unknown, body: unknown, { type }: { type: string }) => {
      patches.push({ ref, body, type });
      return answer();
    },
  } as unknown as Partial<KubeClient>;
  dashboard = await startLoneDashboard({ client, clock: fakeClock() });
  cookie = await dashboard.signIn();
});
afterEach(() => dashboard[Symbol.asyncDispose]());

function change(body: object = CHANGE, name = 'all', headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${dashboard.url}/pools/${name}`, {
    method: 'PATCH',
    headers: { ...PAGE_HEADERS, cookie, ...headers },
    body: JSON.stringify(body),
  });
}

describe('changing the prices of a pool in the page', () => {
  it('asks the cluster about the person, and writes no more than was seen and said', async () => {
    const changed = await change();
    expect([changed.status, await changed.json()]).toEqual([200, { object: 'pool', name: 'all', version: `${UID}/8` }]);
    expect(questions).toEqual([{ group: 'berth.dev', resource: 'gpupools', namespace: '', verb: 'patch' }]);
    const body = [
      { op: 'test', path: '/metadata/uid', value: UID },
      { op: 'test', path: '/metadata/generation', value: 7 },
      { op: 'add', path: '/spec/currency', value: 'EUR' },
      { op: 'add', path: '/spec/sizes', value: [1, 2] },
      { op: 'add', path: '/spec/prices', value: [PRICE] },
    ];
    expect(patches).toEqual([{ ref: { name: 'all' }, body, type: 'json' }]);
  });

  it('is for those whom the cluster lets patch pools, and says how to let others', async () => {
    const rights = () => fetch(`${dashboard.url}/pools/rights`, { headers: { cookie } }).then((one) => one.json());
    expect(await rights()).toEqual({ object: 'pool_rights', change: true });
    isOperator = false;
    expect(await rights()).toEqual({ object: 'pool_rights', change: false });
    const refused = await change();
    expect(refused.status).toBe(403);
    const { error } = (await refused.json()) as { error: { message: string } };
    expect(error.message).toContain('kubectl create clusterrole berth-prices --verb=patch');
    expect(error.message).toContain(String.raw`--user='o'\''neil'`);
    expect(patches).toEqual([]);
  });

  it.each([
    ['another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['a form, which sends no header of its own', { 'x-berth-dashboard': '' }, 403],
    ['nobody who signed in', { cookie: '' }, 401],
  ])('takes nothing from %s', async (_who, headers, status) => {
    expect((await change(CHANGE, 'all', headers)).status).toBe(status);
    expect(patches).toEqual([]);
  });

  it.each([
    ['what nodes it has', { ...CHANGE, nodeSelector: {} }, 'nodeSelector'],
    ['its metadata', { ...CHANGE, metadata: {} }, 'metadata'],
    ['a price that is none', { ...CHANGE, prices: [{ ...PRICE, onDemand: '-1' }] }, 'prices[0].onDemand'],
    ['no version', { ...CHANGE, version: undefined }, 'version'],
    ['the version of something else', { ...CHANGE, version: '7' }, 'version'],
  ])('refuses %s', async (_what, body, path) => {
    const refused = await change(body);
    expect(refused.status).toBe(422);
    const { error } = (await refused.json()) as { error: { fields: { path: string }[] } };
    expect(error.fields.map((field) => field.path)).toEqual([path]);
    expect(patches).toEqual([]);
  });

  it('leads to no other object than a pool', async () => {
    for (const name of ['..%2f..%2fapi', '%2e%2e', 'UPPER']) expect((await change(CHANGE, name)).status).not.toBe(200);
    expect(patches).toEqual([]);
  });

  it.each([
    ['was changed meanwhile', CONFLICT, 409, 'has changed since it was read'],
    ['is gone', GONE, 404, 'There is no GPUPool all'],
  ])('says so when the pool %s', async (_what, error, status, words) => {
    answer = () => Promise.reject(error);
    const refused = await change();
    expect([refused.status, await refused.text()]).toEqual([status, expect.stringContaining(words)]);
  });
});

it('the admission policy keeps every other field of a pool from the dashboard', () => {
  const policy = readFileSync(join(ROOT, 'charts/berth/templates/admission/pools.yaml'), 'utf8');
  const kept = [...policy.matchAll(/object\.\?spec\.\?(\w+) == oldObject\.\?spec\.\?\1\b/g)].map(([, field]) => field);
  const changed = ['currency', 'prices', 'sizes'];
  expect(new Set([...kept, ...changed])).toEqual(new Set(Object.keys(gpuPoolSpecSchema.shape)));
});
