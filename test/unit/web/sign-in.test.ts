import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { explainRefusal } from '../../../src/web/sign-in-token.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { type LoneDashboard, PAGE_HEADERS, startLoneDashboard } from '../../support/lone-dashboard.ts';
import { roleCommands } from '../../../src/web/key-routes.ts';

const clock = fakeClock();

/** A token as `kubectl create token` makes it; nothing here checks its signature. */
function tokenFor(...aud: string[]): string {
  const claims = { aud, sub: 'system:serviceaccount:team:ann', exp: Math.floor(clock.now() / 1000) + 3600 };
  return `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;
}

let dashboard: LoneDashboard;
let url: string;
/** Accounts that the cluster still has. */
let hasAccount: boolean;
/** An authenticator of the cluster that knows nothing of audiences accepts every token, for its own audience. */
let knowsAudiences: boolean;
let reviews: number;

beforeEach(async () => {
  [hasAccount, knowsAudiences, reviews] = [true, true, 0];
  const raw = (_method: string, path: string, body: { spec: { audiences?: string[] } }): Promise<unknown> => {
    if (!path.endsWith('/tokenreviews')) return Promise.resolve({ status: { allowed: true } });
    reviews += 1;
    const user = { username: 'system:serviceaccount:team:ann' };
    const audiences = knowsAudiences && body.spec.audiences ? { audiences: body.spec.audiences } : {};
    return Promise.resolve({ status: hasAccount ? { authenticated: true, user, ...audiences } : {} });
  };
  dashboard = await startLoneDashboard({ client: { raw } as unknown as KubeClient, clock });
  ({ url } = dashboard);
});

afterEach(() => dashboard[Symbol.asyncDispose]());

async function signIn(token: string): Promise<{ status: number; text: string; setCookie: string }> {
  const answer = await fetch(`${url}/session`, {
    method: 'POST',
    headers: PAGE_HEADERS,
    body: JSON.stringify({ token }),
  });
  return { status: answer.status, text: await answer.text(), setCookie: answer.headers.get('set-cookie') ?? '' };
}

describe('signing in', () => {
  it('takes a token for the dashboard alone', async () => {
    expect((await signIn(tokenFor('berth'))).status).toBe(201);
    for (const audience of [['https://kubernetes.default.svc'], ['berth', 'https://kubernetes.default.svc']]) {
      const { status, text } = await signIn(tokenFor(...audience));
      expect(status).toBe(401);
      expect(text).toContain(`This token is for ${audience.join(', ')}.`);
      expect(text).toContain('kubectl create token ann --namespace team --audience=berth');
    }
  });

  it('trusts no answer of a cluster that ignores audiences', async () => {
    knowsAudiences = false;
    expect((await signIn(tokenFor('berth'))).status).toBe(401);
    expect((await signIn('opaque')).status).toBe(401);
  });

  it('gives a cookie that only this host gets, and only over TLS or on localhost', async () => {
    const { setCookie } = await signIn(tokenFor('berth'));
    const [pair = '', ...attributes] = setCookie.split('; ');
    expect(pair).toMatch(/^__Host-berth_session=./);
    expect(attributes).toEqual(expect.arrayContaining(['Path=/', 'Secure', 'HttpOnly', 'SameSite=Strict']));
    expect(setCookie).not.toMatch(/domain/i);
  });
});

it('a session ends within half a minute after its account, and asks the cluster no more than four times a minute', async () => {
  const { setCookie } = await signIn(tokenFor('berth'));
  const cookie = setCookie.split(';', 1)[0] ?? '';
  const visit = async (): Promise<number> => (await fetch(`${url}/session`, { headers: { cookie } })).status;
  for (let second = 0; second < 14; second += 1) {
    expect(await visit()).toBe(200);
    clock.stall(1000);
  }
  expect(reviews).toBe(1);
  hasAccount = false;
  clock.stall(16_000);
  expect(await visit()).toBe(401);
  hasAccount = true;
  expect(await visit()).toBe(200);
});

it.each([
  ['nonsense', 'kubectl create token NAME --namespace NAMESPACE --audience=berth'],
  [
    `e30.${Buffer.from('{"sub":"system:serviceaccount:a;b:c"}').toString('base64url')}.`,
    'create token NAME --namespace NAMESPACE',
  ],
  [tokenFor('berth'), 'The cluster rejects this token. Create another one: kubectl create token ann --namespace team'],
])('the refusal of %s says what to run', (token, expected) => {
  expect(explainRefusal(token)).toContain(expected);
});

it.each([
  ['system:serviceaccount:team:ann', '--serviceaccount=team:ann'],
  ['ann@example.com', "--user='ann@example.com'"],
  ["o'neil", "--user='o'\\''neil'"],
])('the commands that give %s a role bind that user', (username, subject) => {
  const commands = roleCommands(username, 'vision');
  expect(commands).toContain('--verb=list,create,patch --resource=apikeys.berth.dev');
  expect(commands.endsWith(`kubectl create rolebinding keys -n vision --role=keys ${subject}`)).toBe(true);
});
