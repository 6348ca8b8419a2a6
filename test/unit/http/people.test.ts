import type { IncomingMessage } from 'node:http';
import { expect, it } from 'vitest';
import { type AskDashboard, findPrincipal, type Principal } from '../../../src/access/principal.ts';
import { personSigningKey, publicPart, signPersonToken } from '../../../src/access/person-token.ts';
import { Authenticator } from '../../../src/access/authenticator.ts';
import { acceptPeople, People } from '../../../src/http/interface/auth/people.ts';
import type { ReadStore } from '../../../src/kube/watch/store.ts';
import type { ApiKey, Scope } from '../../../src/resources/api-key.ts';
import { ALL_TENANTS } from '../../support/access.ts';
import type { Caller } from '../../../src/access/authenticator.ts';
import { fakeClock } from '../../support/fake-clock.ts';

/** A header of such a token, and nothing that is signed. */
const FORGED = `${Buffer.from('{"alg":"EdDSA","typ":"berth-person+jwt"}').toString('base64url')}.e30.AAAA`;
const NO_KEYS = { by: () => [] } as unknown as ReadStore<ApiKey>;

function world() {
  const clock = fakeClock();
  let key = personSigningKey(Buffer.alloc(32, 1));
  let isThere = true;
  let asked = 0;
  const readKey = () => {
    asked += 1;
    return isThere ? Promise.resolve(publicPart(key)) : Promise.reject(new Error('no dashboard'));
  };
  const vouch: AskDashboard = ({ session, namespace, scope }) =>
    Promise.resolve(session === 'sealed' && namespace === 'team-a' && scope === 'models' ? 7 : undefined);
  const people = new People({ readKey, vouch, clock });
  return {
    clock,
    people,
    asked: () => asked,
    turn: () => {
      key = personSigningKey(Buffer.alloc(32, 2));
    },
    leave: () => {
      isThere = false;
    },
    token: () => {
      const [expires, until] = [clock.now() + 45_000, clock.now() + 3_600_000];
      const claims = { id: 'ab'.repeat(16), username: 'ann', namespace: 'team-a', expires, until, session: 'sealed' };
      return signPersonToken({ ...claims, scopes: ['compute:read'] }, key);
    },
  };
}

async function callerOf(people: People | undefined, authorization: string): Promise<Principal | undefined> {
  const headers = { headers: { authorization }, headersDistinct: { authorization: [authorization] } };
  const request = { ...headers, path: '/instances' };
  const handle = acceptPeople(people) as unknown as (
    request: object,
    response: object,
    next: () => void,
  ) => Promise<void>;
  let isPassedOn = false;
  await handle(request, {}, () => {
    isPassedOn = true;
  });
  expect(isPassedOn).toBe(true);
  return findPrincipal(request as unknown as IncomingMessage);
}

it('finds a person in one tenant, and asks the dashboard once', async () => {
  const { people, token, asked } = world();
  expect(await callerOf(people, `Bearer ${await token()}`)).toMatchObject({
    namespace: 'team-a',
    scopes: ['compute:read'],
  });
  expect(await callerOf(people, `Bearer ${await token()}`)).toBeDefined();
  expect(asked()).toBe(1);
});

it('asks the dashboard about a person again, with the session in the token', async () => {
  const { people, token } = world();
  const caller = await callerOf(people, `Bearer ${await token()}`);
  expect([await caller?.vouch?.('models'), await caller?.vouch?.('compute:read')]).toEqual([7, undefined]);
});

it('leaves keys, wrong tokens and every token without a dashboard to the check of keys', async () => {
  const { people, token, asked } = world();
  expect(await callerOf(people, 'Bearer berth_abc')).toBeUndefined();
  expect(asked()).toBe(0);
  expect(await callerOf(people, `Bearer ${await token()}x`)).toBeUndefined();
  expect(await callerOf(undefined, `Bearer ${await token()}`)).toBeUndefined();
});

it('finds people again after the dashboard has another key, and lets wrong tokens ask seldom', async () => {
  const { clock, people, token, turn, asked } = world();
  await people.find(await token());
  turn();
  expect(await people.find(await token())).toBeUndefined();
  for (let calls = 0; calls < 50; calls += 1) await people.find(FORGED);
  expect(asked()).toBe(1);
  await clock.advance(5_000);
  expect(await people.find(await token())).toBeDefined();
  expect(asked()).toBe(2);
});

it('knows whom it knew while the dashboard is away', async () => {
  const { clock, people, token, leave } = world();
  await people.find(await token());
  leave();
  await clock.advance(10_000);
  expect(await people.find(await token())).toBeDefined();
  expect(await people.find(FORGED)).toBeUndefined();
});

it('a stream of a person ends with the token, and a port with the sign-in', async () => {
  const { clock, people, token } = world();
  const caller = await people.find(await token());
  const authenticator = new Authenticator({ apiKeys: NO_KEYS, tenants: ALL_TENANTS, clock });
  const may = (who: Caller, scope: Scope) => authenticator.refusal(who, { scope }) === undefined;
  const { keyId = '' } = caller ?? {};
  const valid = () => [
    caller !== undefined && may(caller, 'compute:read'),
    may({ keyId, namespace: 'team' }, 'compute:write'),
  ];
  expect(valid()).toEqual([true, true]);
  expect(caller !== undefined && may(caller, 'compute:write')).toBe(false);
  await clock.advance(45_000);
  expect(valid()).toEqual([false, true]);
  await clock.advance(3_600_000);
  expect(valid()).toEqual([false, false]);
});
