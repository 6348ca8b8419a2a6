import { createPublicKey, type webcrypto } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type PersonClaims, readPersonToken } from '../../../src/access/person-token.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { type LoneDashboard, PAGE_HEADERS, startLoneDashboard } from '../../support/lone-dashboard.ts';

const clock = fakeClock();

interface Review {
  resource: string;
  verb: string;
  namespace: string;
}

/** Who it is about, what RBAC allows them, and the scopes for that. */
type Case = [who: string, allowed: (review: Review) => boolean, scopes: string[]];

const isInside = ({ namespace }: Review): boolean => namespace === 'team-a';

let client: KubeClient;
let dashboard: LoneDashboard;
let url: string;
let hasAccount: boolean;
/** What RBAC allows. */
let mayDo: (review: Review) => boolean;

beforeEach(async () => {
  hasAccount = true;
  mayDo = () => true;
  const raw = (_method: string, path: string, body: { spec: { resourceAttributes: Review } }): Promise<unknown> => {
    if (!path.endsWith('/tokenreviews')) {
      return Promise.resolve({ status: { allowed: mayDo(body.spec.resourceAttributes) } });
    }
    const user = { username: 'ann@example.com' };
    return Promise.resolve({ status: hasAccount ? { authenticated: true, user, audiences: ['berth'] } : {} });
  };
  client = { raw } as unknown as KubeClient;
  dashboard = await startLoneDashboard({ client, clock });
  ({ url } = dashboard);
});

afterEach(() => dashboard[Symbol.asyncDispose]());

async function cookie(): Promise<string> {
  const body = JSON.stringify({ token: 'opaque' });
  const answer = await fetch(`${url}/session`, { method: 'POST', headers: PAGE_HEADERS, body });
  return answer.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
}

function ask(headers: Record<string, string>, namespace = 'team-a'): Promise<Response> {
  const body = JSON.stringify({ namespace });
  return fetch(`${url}/token`, { method: 'POST', headers: { ...PAGE_HEADERS, ...headers }, body });
}

async function claimsOf(answer: Response): Promise<PersonClaims | undefined> {
  const jwk = (await (await fetch(`${url}/signing-key`)).json()) as webcrypto.JsonWebKey;
  expect(jwk).not.toHaveProperty('d');
  const { token } = (await answer.json()) as { token: string };
  return readPersonToken(token, { key: createPublicKey({ key: jwk, format: 'jwk' }), now: clock.now() });
}

it('is for one tenant and 20 seconds, and never for longer than the sign-in', async () => {
  const session = await cookie();
  const claims = await claimsOf(await ask({ cookie: session }));
  expect(claims).toMatchObject({ namespace: 'team-a', username: 'ann@example.com', expires: clock.now() + 20_000 });
  clock.stall(3_600_000 - 10_000);
  const last = await claimsOf(await ask({ cookie: session }));
  expect([last?.expires, last?.until]).toEqual([clock.now() + 10_000, clock.now() + 10_000]);
});

it.each<Case>([
  ['everything', () => true, ['compute:read', 'compute:write', 'models', 'fleet:read']],
  ['everything in the namespace', isInside, ['compute:read', 'compute:write', 'models']],
  ['to look', (one: Review) => isInside(one) && one.verb === 'list', ['compute:read']],
  [
    'all but to delete SSH keys',
    (one: Review) => isInside(one) && one.verb + one.resource !== 'deletesshkeys',
    ['compute:read', 'models'],
  ],
  [
    'all but to make keys',
    (one: Review) => isInside(one) && one.resource !== 'apikeys',
    ['compute:read', 'compute:write'],
  ],
  ...['nodes', 'pods', 'gpupools', 'gpuinstances', 'tenantlimits'].map((kind): Case => [
    `everything but to list ${kind} of all`,
    (one) => isInside(one) || one.resource !== kind,
    ['compute:read', 'compute:write', 'models'],
  ]),
])('who may do %s gets the scopes for it', async (_name, allowed, scopes) => {
  mayDo = allowed;
  expect((await claimsOf(await ask({ cookie: await cookie() })))?.scopes).toEqual(scopes);
});

it.each(['list', 'create', 'patch', 'delete'])(
  'who may not %s webhooks writes only where there are none',
  async (verb) => {
    mayDo = ({ resource, verb: asked }) => resource !== 'webhooks' || asked !== verb;
    expect((await claimsOf(await ask({ cookie: await cookie() })))?.scopes).toContain('compute:write');
    await using other = await startLoneDashboard({ client, clock, webhooks: true });
    ({ url } = other);
    expect((await claimsOf(await ask({ cookie: await cookie() })))?.scopes).not.toContain('compute:write');
    mayDo = () => true;
    expect((await claimsOf(await ask({ cookie: await cookie() })))?.scopes).toContain('compute:write');
  },
);

it('is not asked for without a pause: a sign-in has its share of the reviews of the API server', async () => {
  const session = await cookie();
  let reviews = 0;
  mayDo = () => {
    reviews += 1;
    return true;
  };
  const statuses: number[] = [];
  for (let count = 0; count < 130; count += 1) statuses.push((await ask({ cookie: session }, `team-${count}`)).status);
  expect(statuses.filter((status) => status === 201)).toHaveLength(120);
  expect(statuses.slice(120)).toEqual(Array.from({ length: 10 }, () => 429));
  const before = reviews;
  const answer = await ask({ cookie: session });
  expect([answer.headers.get('retry-after'), await answer.text(), reviews]).toEqual([
    expect.stringMatching(/^[1-9]\d?$/),
    expect.stringContaining('120 tokens in a minute'),
    before,
  ]);
});

it('is refused where the roles give nothing, with the roles that would', async () => {
  mayDo = ({ namespace }) => namespace === 'team-a';
  const session = await cookie();
  expect((await ask({ cookie: session })).status).toBe(201);
  const answer = await ask({ cookie: session }, 'team-b');
  expect(answer.status).toBe(403);
  expect(await answer.text()).toContain('berth-view to look, berth-edit to rent');
  expect((await ask({ cookie: session }, '../x')).status).toBe(422);
});

it('is refused without a session, to another site, and at once when the account is gone', async () => {
  const session = await cookie();
  expect((await ask({})).status).toBe(401);
  expect((await ask({ cookie: session, 'sec-fetch-site': 'same-site' })).status).toBe(403);
  expect((await ask({ cookie: session, 'x-berth-dashboard': '' })).status).toBe(403);
  hasAccount = false;
  expect((await ask({ cookie: session })).status).toBe(401);
});

describe('what goes on for longer than its token', () => {
  const vouched = async (session: string, scope: string, namespace = 'team-a'): Promise<unknown> => {
    const body = JSON.stringify({ session, namespace, scope });
    const answer = await fetch(`${url}/vouch`, { method: 'POST', headers: PAGE_HEADERS, body });
    return answer.status === 200 ? ((await answer.json()) as { until: unknown }).until : answer.status;
  };
  const sessionOf = async (): Promise<string> => (await claimsOf(await ask({ cookie: await cookie() })))?.session ?? '';

  it('is vouched for as long as the person has the role, also when the token is over', async () => {
    const session = await sessionOf();
    expect(await vouched(session, 'models')).toBe(clock.now() + 20_000);
    clock.stall(60_000);
    expect(await vouched(session, 'models')).toBe(clock.now() + 20_000);
    mayDo = ({ resource }) => resource !== 'apikeys';
    expect([await vouched(session, 'models'), await vouched(session, 'compute:read')]).toEqual([
      null,
      clock.now() + 20_000,
    ]);
  });

  it('ends with the account, and with the sign-in', async () => {
    const session = await sessionOf();
    hasAccount = false;
    clock.stall(16_000);
    expect(await vouched(session, 'models')).toBeNull();
    hasAccount = true;
    expect(await vouched(session, 'models')).toBe(clock.now() + 20_000);
    clock.stall(3_600_000);
    expect(await vouched(session, 'models')).toBeNull();
  });

  it('needs a session that the dashboard sealed for this, and roles in that tenant; it is for nothing else', async () => {
    const signIn = await cookie();
    const session = (await claimsOf(await ask({ cookie: signIn })))?.session ?? '';
    expect(await vouched(`${session.slice(0, -4)}AAAA`, 'models')).toBeNull();
    expect(await vouched(signIn.split('=', 2)[1] ?? '', 'models')).toBeNull();
    mayDo = isInside;
    expect([await vouched(session, 'models'), await vouched(session, 'models', 'team-b')]).toEqual([
      clock.now() + 20_000,
      null,
    ]);
    expect(await vouched(session, 'fleet:read')).toBeNull();
    expect((await ask({ cookie: `__Host-berth_session=${session}` })).status).toBe(401);
    expect(Buffer.from(session, 'base64url').toString('latin1')).not.toContain('opaque');
  });
});
