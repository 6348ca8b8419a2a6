import { once } from 'node:events';
import { type IncomingMessage, request as send } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { isFromThisMachine, SignInCodes } from '../../../src/web/sign-in-codes.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { type LoneDashboard, PAGE_HEADERS, startLoneDashboard } from '../../support/lone-dashboard.ts';

const TOKEN = 'a token of somebody';
const clock = fakeClock();
let dashboard: LoneDashboard;
/** Whether the account is still there. */
let hasAccount: boolean;

beforeEach(async () => {
  hasAccount = true;
  const raw = (_method: string, _path: string, { spec }: { spec: { token: string } }): Promise<unknown> => {
    const user = { username: 'system:serviceaccount:team:ann' };
    const isGood = hasAccount && spec.token === TOKEN;
    return Promise.resolve({ status: isGood ? { authenticated: true, user, audiences: ['berth'] } : {} });
  };
  dashboard = await startLoneDashboard({ client: { raw } as unknown as KubeClient, clock });
});

afterEach(() => dashboard[Symbol.asyncDispose]());

interface Answer {
  status: number;
  body: { code?: string; error?: { message: string } };
  cookie: string;
}

async function post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const request = send(`${dashboard.url}${path}`, { method: 'POST', headers: { ...PAGE_HEADERS, ...headers } });
  request.end(JSON.stringify(body));
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  let text = '';
  for await (const part of answer.setEncoding('utf8')) text += String(part);
  const cookie = answer.headers['set-cookie']?.[0] ?? '';
  return { status: answer.statusCode ?? 0, body: JSON.parse(text) as Answer['body'], cookie };
}

async function makeCode(): Promise<string> {
  return (await post('/session/codes', { token: TOKEN })).body.code ?? '';
}

describe('a link that signs in', () => {
  it('does so once', async () => {
    const code = await makeCode();
    const first = await post('/session/by-code', { code });
    expect(first).toMatchObject({ status: 201, body: { username: 'system:serviceaccount:team:ann' } });
    expect(first.cookie).toMatch(/^__Host-berth_session=.+HttpOnly/);
    const second = await post('/session/by-code', { code });
    expect(second).toMatchObject({ status: 401, cookie: '' });
    expect(second.body.error?.message).toContain('npm run sign-in');
  });

  it('does so once also for two who come at the same time', async () => {
    const code = await makeCode();
    const answers = await Promise.all([post('/session/by-code', { code }), post('/session/by-code', { code })]);
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 401]);
  });

  it('ends after a minute, and with its account', async () => {
    const [late, orphan] = [await makeCode(), await makeCode()];
    hasAccount = false;
    expect((await post('/session/by-code', { code: orphan })).status).toBe(401);
    hasAccount = true;
    clock.stall(60_000);
    expect((await post('/session/by-code', { code: late })).status).toBe(401);
  });

  it('is made only for a token that the dashboard takes, and for no other site', async () => {
    expect(await post('/session/codes', { token: 'another' })).toMatchObject({ status: 401 });
    const foreign = { 'sec-fetch-site': 'cross-site' };
    expect((await post('/session/codes', { token: TOKEN }, foreign)).status).toBe(403);
    expect((await post('/session/by-code', { code: await makeCode() }, foreign)).status).toBe(403);
  });

  it.each<Record<string, string>>([
    { host: 'evil.example' },
    { host: 'localhost.evil.example' },
    { host: 'localhost@evil.example' },
    { 'x-forwarded-for': '127.0.0.1' },
    { forwarded: 'for=127.0.0.1' },
  ])('is neither made nor used by %o, and stays good', async (headers) => {
    const code = await makeCode();
    expect((await post('/session/codes', { token: TOKEN }, headers)).status).toBe(403);
    expect((await post('/session/by-code', { code }, headers)).status).toBe(403);
    expect((await post('/session/by-code', { code }, { host: 'localhost:8080' })).status).toBe(201);
  });
});

it('only addresses of this machine count as this machine', () => {
  const from = (remoteAddress: string): boolean =>
    isFromThisMachine({ socket: { remoteAddress }, headers: { host: 'localhost' } } as Parameters<
      typeof isFromThisMachine
    >[0]);
  for (const address of ['127.0.0.1', '127.8.0.1', '::1', '::ffff:127.0.0.1'])
    expect(from(address), address).toBe(true);
  for (const address of ['10.0.0.1', '::ffff:10.0.0.1', '128.0.0.1', '', '1270.0.0.1'])
    expect(from(address), address).toBe(false);
});

it('keeps few codes: the oldest goes', () => {
  const codes = new SignInCodes(clock);
  const made = Array.from({ length: 21 }, (_, index) => codes.add(`token ${index}`));
  expect(made.map((code) => codes.take(code))).toEqual([
    undefined,
    ...Array.from({ length: 20 }, (_, index) => `token ${index + 1}`),
  ]);
});
