import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import type { ApiKey } from '../../../src/resources/api-key.ts';
import { expiryOf, type KeyDays } from '../../../src/web/key-life.ts';
import { keyLives } from '../../../src/web/page/access/key-lives.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { type LoneDashboard, PAGE_HEADERS, startLoneDashboard } from '../../support/lone-dashboard.ts';

const NOW = Date.parse('2026-11-01T12:00:00Z');
const DAY_MS = 86_400_000;
const NONE: KeyDays = { default: 0, max: 0 };
const inDays = (days: number): string => new Date(NOW + days * DAY_MS).toISOString();

describe('a new key', () => {
  it.each<[string, string | null | undefined, KeyDays, string | undefined]>([
    ['has no end where nobody says one', undefined, NONE, undefined],
    ['ends when it is asked to', '2030-01-01T00:00:00.5+01:00', NONE, '2029-12-31T23:00:00Z'],
    ['ends as the operator has it', null, { default: 30, max: 0 }, '2026-12-01T12:00:00Z'],
    [
      'may live longer where the operator sets no maximum',
      inDays(900),
      { default: 30, max: 0 },
      '2029-04-19T12:00:00Z',
    ],
    [
      'ends after the longest life where the operator sets only that',
      undefined,
      { default: 0, max: 7 },
      '2026-11-08T12:00:00Z',
    ],
    ['ends at the default below the maximum', undefined, { default: 1, max: 7 }, '2026-11-02T12:00:00Z'],
    ['may live as long as the maximum', inDays(7), { default: 1, max: 7 }, '2026-11-08T12:00:00Z'],
    [
      'may be asked for by a browser whose clock is ahead',
      inDays(7 + 1 / 24),
      { default: 0, max: 7 },
      '2026-11-08T13:00:00Z',
    ],
  ])('%s', (_what, asked, days, expected) => {
    expect(expiryOf(asked, days, NOW)).toBe(expected);
  });

  it('is refused beyond the maximum, with the number of days', () => {
    expect(() => expiryOf(inDays(8), { default: 0, max: 7 }, NOW)).toThrow(
      'expires_at: an API key lives 7 days at most here (keys.maxDays): write an earlier time, or none',
    );
  });
});

describe('the list of the page', () => {
  it.each<[string, KeyDays, string[], string]>([
    ['is as ever without a setting', NONE, ['7', '30', '90', '365', ''], '90'],
    ['has the default, and no key for ever', { default: 14, max: 0 }, ['7', '14', '30', '90', '365'], '14'],
    ['ends at the maximum', { default: 0, max: 60 }, ['7', '30', '60'], '60'],
    ['has 90 days below a longer maximum', { default: 0, max: 400 }, ['7', '30', '90', '365', '400'], '90'],
    ['has one line where a day is all', { default: 1, max: 1 }, ['1'], '1'],
  ])('%s', (_what, days, values, chosen) => {
    const lives = keyLives(days);
    expect(lives.choices.map(([value]) => value)).toEqual(values);
    expect(lives.chosen).toBe(chosen);
  });
});

describe('the dashboard', () => {
  let dashboard: LoneDashboard;
  let cookie: string;
  let made: ApiKey[];

  beforeEach(async () => {
    made = [];
    const client = {
      raw: (_method: string, path: string) =>
        Promise.resolve({
          status: path.endsWith('/tokenreviews')
            ? { authenticated: true, user: { username: 'ann' }, audiences: ['berth'] }
            : { allowed: true },
        }),
      create: (_kind: unknown, key: ApiKey) => {
        made.push(key);
        return Promise.resolve(key);
      },
    } as unknown as KubeClient;
    dashboard = await startLoneDashboard({ client, clock: fakeClock(), keyDays: { default: 30, max: 90 } });
    cookie = await dashboard.signIn();
  });
  afterEach(() => dashboard[Symbol.asyncDispose]());

  function make(body: object): Promise<Response> {
    const all = JSON.stringify({ namespace: 'team-a', scopes: ['models'], ...body });
    return fetch(`${dashboard.url}/keys`, { method: 'POST', headers: { ...PAGE_HEADERS, cookie }, body: all });
  }

  it('tells its page how long keys live', async () => {
    const answer = await fetch(`${dashboard.url}/session`, { headers: { cookie } });
    expect(await answer.json()).toMatchObject({ key_days: { default: 30, max: 90 } });
  });

  it('fills the end in, and makes no key that lives longer', async () => {
    expect((await make({})).status).toBe(201);
    const expiresAt = new Date(fakeClock().now() + 30 * DAY_MS).toISOString().slice(0, 19);
    expect(made.map(({ spec }) => spec.expiresAt)).toEqual([`${expiresAt}Z`]);
    const refused = await make({ expires_at: '9999-01-01T00:00:00Z' });
    expect(refused.status).toBe(422);
    expect(await refused.text()).toContain('an API key lives 90 days at most here');
    expect(made).toHaveLength(1);
  });
});
