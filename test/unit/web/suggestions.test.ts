import { afterEach, beforeEach, expect, it } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { type LoneDashboard, PAGE_HEADERS, startLoneDashboard } from '../../support/lone-dashboard.ts';

const clock = fakeClock();

let dashboard: LoneDashboard;
let reviews: number;
let fails: boolean;

beforeEach(async () => {
  [reviews, fails] = [0, false];
  const raw = (_method: string, path: string, { spec }: { spec: { token?: string } }): Promise<unknown> => {
    if (path.endsWith('/tokenreviews')) {
      const user = { username: spec.token };
      return Promise.resolve({ status: { authenticated: true, user, audiences: ['berth'] } });
    }
    reviews++;
    return fails ? Promise.reject(new Error('no answer')) : Promise.resolve({ status: { allowed: true } });
  };
  dashboard = await startLoneDashboard({ client: { raw } as unknown as KubeClient, clock });
});

afterEach(() => dashboard[Symbol.asyncDispose]());

async function signIn(person: string): Promise<string> {
  const body = JSON.stringify({ token: person });
  const answer = await fetch(`${dashboard.url}/session`, { method: 'POST', headers: PAGE_HEADERS, body });
  return answer.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
}

async function get(cookie: string, path = '/namespaces'): Promise<number> {
  const answer = await fetch(`${dashboard.url}${path}`, { headers: { ...PAGE_HEADERS, cookie } });
  await answer.arrayBuffer();
  return answer.status;
}

it('the namespaces of a person are asked for once in ten seconds, from however many tabs and sign-ins', async () => {
  const [first, second] = [await signIn('ann'), await signIn('ann')];
  expect(await Promise.all([get(first), get(first), get(second), get(second)])).toEqual([200, 200, 200, 200]);
  expect(reviews).toBe(1);
  clock.stall(9_999);
  await get(first);
  expect(reviews).toBe(1);
  clock.stall(1);
  await get(first);
  expect(reviews).toBe(2);
  await get(await signIn('bob'));
  expect(reviews).toBe(3);
});

it('a question that failed is asked again', async () => {
  const session = await signIn('ann');
  fails = true;
  expect(await get(session)).toBe(500);
  fails = false;
  expect(await get(session)).toBe(200);
});

it('a person may call 120 times a minute, with whatever sign-ins, and others as often', async () => {
  const [first, second] = [await signIn('ann'), await signIn('ann')];
  const answers: number[] = [];
  for (let call = 0; call < 60; call++) answers.push(await get(first, '/keys?namespace=a'), await get(second));
  expect(new Set(answers)).toEqual(new Set([200]));
  expect([await get(first), await get(second, '/keys?namespace=a')]).toEqual([429, 429]);
  expect(reviews).toBe(61);
  expect(await get(await signIn('bob'))).toBe(200);
});
