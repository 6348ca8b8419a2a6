import { afterEach, beforeEach, expect, it } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { ENDED_SECRET, EndedSessions } from '../../../src/web/ended-sessions.ts';
import { newSessionId, type Session } from '../../../src/web/session.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { type LoneDashboard, PAGE_HEADERS, startLoneDashboard } from '../../support/lone-dashboard.ts';
import { memorySecrets } from '../../support/memory-secrets.ts';

const HOUR_MS = 3_600_000;

let clock: ReturnType<typeof fakeClock>;
let secrets: ReturnType<typeof memorySecrets>;
/** Two replicas. */
let [one, other]: LoneDashboard[] = [];

beforeEach(async () => {
  clock = fakeClock();
  secrets = memorySecrets();
  const raw = (_method: string, path: string): Promise<unknown> => {
    if (!path.endsWith('/tokenreviews')) return Promise.resolve({ status: { allowed: true } });
    const user = { username: 'ann@example.com' };
    return Promise.resolve({ status: { authenticated: true, user, audiences: ['berth'] } });
  };
  const options = { client: { raw } as unknown as KubeClient, clock, secrets };
  [one, other] = [await startLoneDashboard(options), await startLoneDashboard(options)];
});

afterEach(async () => {
  for (const dashboard of [one, other]) await dashboard?.[Symbol.asyncDispose]();
});

/** @param what method and path */
function call(dashboard: LoneDashboard | undefined, what: string, cookie: string, body?: object) {
  const [method = '', path = ''] = what.split(' ');
  const headers = { ...PAGE_HEADERS, cookie };
  return fetch(`${dashboard?.url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
}

async function visit(dashboard: LoneDashboard | undefined, cookie: string): Promise<number> {
  return (await call(dashboard, 'GET /session', cookie)).status;
}

/** What the tokens of people and the cookies of ports carry. */
async function sealedOf(cookie: string): Promise<{ session: string; sub: string }> {
  const answer = await call(one, 'POST /token', cookie, { namespace: 'team-a' });
  const { token } = (await answer.json()) as { token: string };
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { session: string; sub: string };
}

/** Until when a port, a terminal or a stream may go on. */
async function vouched(dashboard: LoneDashboard | undefined, session: string): Promise<unknown> {
  const asked = { session, namespace: 'team-a', scope: 'compute:write' };
  return ((await (await call(dashboard, 'POST /vouch', '', asked)).json()) as { until: unknown }).until;
}

it('ends a copy of the session and all that it opened, on every replica within a second', async () => {
  const cookie = (await one?.signIn()) ?? '';
  const { session } = await sealedOf(cookie);
  expect([await visit(one, cookie), await visit(other, cookie)]).toEqual([200, 200]);
  expect([await vouched(one, session), await vouched(other, session)]).toEqual(
    Array.from({ length: 2 }, () => clock.now() + 20_000),
  );
  const answer = await call(one, 'DELETE /session', cookie);
  expect(answer.headers.get('set-cookie')).toMatch(/^__Host-berth_session=;/);
  expect([await visit(one, cookie), await vouched(one, session)]).toEqual([401, null]);
  clock.stall(500);
  expect([await visit(other, cookie), await vouched(other, session)]).toEqual([401, null]);
  expect(await (await call(other, 'POST /token', cookie, { namespace: 'team-a' })).text()).toContain('was signed out');
});

it('leaves other sign-ins alone, also with the same token', async () => {
  const [first = '', second = ''] = [await one?.signIn(), await one?.signIn()];
  const [{ session, sub }, { sub: ofFirst }] = [await sealedOf(second), await sealedOf(first)];
  // Where they were one caller, the refusal of one would end what the other has open.
  expect(sub).not.toBe(ofFirst);
  await call(one, 'DELETE /session', first);
  clock.stall(500);
  expect([await visit(other, second), await vouched(other, session)]).toEqual([200, clock.now() + 20_000]);
  expect(await visit(other, (await other?.signIn()) ?? '')).toBe(200);
});

it('is remembered for as long as the session would last, and no longer', async () => {
  const cookie = (await one?.signIn()) ?? '';
  await call(one, 'DELETE /session', cookie);
  await call(other, 'DELETE /session', cookie);
  const marks = (): string[] => Object.keys(secrets.kept.get(ENDED_SECRET)?.data ?? {});
  expect(marks()).toHaveLength(1);
  clock.stall(HOUR_MS - 1000);
  expect(await visit(other, cookie)).toBe(401);
  clock.stall(62_000);
  const [old] = marks();
  await call(one, 'DELETE /session', (await one?.signIn()) ?? '');
  expect(marks()).toHaveLength(1);
  expect(marks()).not.toContain(old);
});

it('says so when it was not written: the copy is good', async () => {
  const cookie = (await one?.signIn()) ?? '';
  secrets.get = () => Promise.reject(new Error('The API server does not answer.'));
  const answer = await call(one, 'DELETE /session', cookie);
  expect(answer.status).toBeGreaterThanOrEqual(500);
  expect(answer.headers.get('set-cookie')).toMatch(/^__Host-berth_session=;/);
});

it('two replicas undo no mark of each other, and one person cannot fill the list', async () => {
  const replica = (): EndedSessions => new EndedSessions({ client: secrets, clock, namespace: 'berth-system' });
  const [first, second] = [replica(), replica()];
  const sessionOf = (person: string): Session => ({
    id: newSessionId(person),
    token: 'same',
    expires: clock.now() + HOUR_MS,
  });
  const ofAnn = Array.from({ length: 50 }, () => sessionOf('ann'));
  await Promise.all(ofAnn.map((session, index) => (index % 2 === 0 ? first : second).end(session)));
  clock.stall(500);
  for (const each of [first, second])
    expect(await Promise.all(ofAnn.map((session) => each.has(session)))).not.toContain(false);
  await expect(first.end(sessionOf('ann'))).rejects.toThrow('you signed out 50 times in the last hour');
  // Again is no other time.
  await second.end(ofAnn[0] ?? sessionOf('ann'));
  await first.end(sessionOf('ben'));
  clock.stall(HOUR_MS);
  await first.end(sessionOf('ann'));
});

it('the API server is asked twice a second at most, and not at all where nobody is', async () => {
  let reads = 0;
  const { get } = secrets;
  secrets.get = ((...args: Parameters<typeof get>) => {
    reads += 1;
    return get(...args);
  }) as typeof get;
  const cookie = (await one?.signIn()) ?? '';
  expect(reads).toBe(0);
  for (let tenth = 0; tenth < 20; tenth += 1) {
    await visit(one, cookie);
    clock.stall(100);
  }
  expect(reads).toBe(4);
});
