import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bytesOf, chart } from '../../../src/cli/commands/top.ts';
import { manual } from '../../../src/cli/manual.ts';
import { didYouMean, nearest } from '../../../src/cli/nearest.ts';
import { COMMANDS } from '../../../src/cli/table/commands.ts';
import { storeAccess } from '../../../src/cli/settings.ts';
import { fitted, widthOf, wrapped } from '../../../src/cli/width.ts';
import { run } from '../../../tools/lib/shell.ts';
import { type Answer, berth, json, list, refuse, stream } from '../../support/scripted-cli.ts';

const one = (id: string, name: string | null = null) => ({
  id,
  name,
  state: 'running',
  gpu_count: 1,
  gpu_name: 'NVIDIA-L4',
  price_per_hour: '0.50',
  currency: 'USD',
  created_at: '2026-01-01T00:00:00Z',
  template_image: 'image',
  disk_policy: 'delete',
});
const [FIRST, SECOND] = [one('i-abc123', 'train'), one('i-abd456', 'serve')];

/** A server that has these two. */
const two: Answer = (response, seen) => {
  const [, id] = /^\S+ \/api\/v1\/instances\/([^/?]+)/.exec(seen.line) ?? [];
  const found = [FIRST, SECOND].find((record) => record.id === id);
  const answer =
    id === undefined
      ? list(FIRST, SECOND)
      : found === undefined
        ? refuse(404, 'instance_not_found', 'No instance.')
        : json(200, found);
  answer(response, seen);
};

describe('what somebody may have meant', () => {
  it.each([
    ['instnaces', ['instances', 'offers'], 'instances'],
    ['gpuu', ['gpu', 'gpus'], 'gpu'],
    ['temp', ['templates', 'usage'], 'templates'],
    ['l4', ['l40s', 'h100'], 'l40s'],
    ['x', ['ls', 'rm'], undefined],
    ['entirely-else', ['ls', 'rm'], undefined],
    ['', ['ls'], undefined],
  ])('by %j of %j is %s', (word, known, meant) => {
    expect(nearest(word, known)).toBe(meant);
  });

  it('is found in no time, however long the words are', () => {
    expect(nearest('x'.repeat(1_000_000), ['y'.repeat(1_000_000)])).toBeUndefined();
    expect(didYouMean('gpuu', ['gpu'], (word) => `--${word}`)).toBe('Did you mean --gpu?');
  });

  it.each([
    [['rnet'], 'There is no command berth rnet.\nDid you mean berth rent?'],
    [['rent', '--gpuu', 'l4'], 'berth rent has no option --gpuu.\nDid you mean --gpu?'],
    [['rent', '--gpu'], '--gpu needs a value: write --gpu NAME.'],
    [
      ['set', 'i-1', '--on-expiry', 'delte'],
      '--on-expiry delte is not valid: write stop or delete.\nDid you mean delete?',
    ],
    [['show', 'trian'], 'No instance has the id or the name trian.\nDid you mean train?'],
    [['ssh-keys', 'add', '/nowhere.pub'], 'There is no file /nowhere.pub.'],
  ])('is said for berth %j', async (words, message) => {
    const { code, said } = await berth(words, [two]);
    expect(code).toBeGreaterThan(1);
    expect(said).toContain(`berth: ${message}`);
  });

  it('is said for a GPU, and no GPU of another name is rented', async () => {
    const offer = { id: 1, gpu_name: 'NVIDIA-L40S', gpu_count: 1, isolation: 'whole', available: 1 };
    const { code, said } = await berth(['rent', '--gpu', 'l4', '--yes'], [list(offer)]);
    expect([code, said]).toEqual([5, 'berth: No GPU that fits is called l4.\nDid you mean l40s?']);
  });
});

describe('instances by a part of their id', () => {
  it('are found where it is the beginning of one alone, and long enough to be meant', async () => {
    expect((await berth(['show', 'i-abc', '--json'], [two])).out).toContain('i-abc123');
    const both = await berth(['rm', 'i-abc', 'i-ab', '-y'], [two]);
    expect([both.code, both.said]).toEqual([4, expect.stringContaining('No instance has the id or the name i-ab.')]);
    expect(both.seen.filter(({ line }) => line.startsWith('DELETE'))).toEqual([]);
    const three: Answer = (response, seen) =>
      (seen.line.endsWith('/instances') ? list(FIRST, one('i-abc999')) : refuse(404, 'instance_not_found', 'No.'))(
        response,
        seen,
      );
    expect(await berth(['show', 'i-abc'], [three])).toMatchObject({
      code: 2,
      said: expect.stringContaining('i-abc123, i-abc999') as string,
    });
  });

  it('are deleted together, after one question, each once', async () => {
    const { code, said, seen } = await berth(['rm', 'train', 'i-abd456', 'i-abc1'], [two], ['y']);
    expect(code).toBe(0);
    expect(said).toContain('Delete these 2? [y/N]');
    expect(seen.filter(({ line }) => line.startsWith('DELETE')).map(({ line }) => line)).toEqual([
      'DELETE /api/v1/instances/i-abc123',
      'DELETE /api/v1/instances/i-abd456',
    ]);
    const declined = await berth(['rm', 'train', 'serve'], [two], ['n']);
    expect([declined.code, declined.seen.some(({ line }) => line.startsWith('DELETE'))]).toEqual([1, false]);
  });
});

describe('berth rm --all', () => {
  it('deletes all, after one question that names each, but for those that are deleted already', async () => {
    const three: Answer = (response, seen) =>
      (seen.line.startsWith('GET') ? list(FIRST, SECOND, { ...one('i-gone77'), state: 'deleting' }) : json(200, {}))(
        response,
        seen,
      );
    const { code, said, seen } = await berth(['rm', '--all'], [three], ['y']);
    expect([code, said.match(/i-abc123 \(train\)|i-abd456 \(serve\)|Delete these 2/g)]).toEqual([
      0,
      ['i-abc123 (train)', 'i-abd456 (serve)', 'Delete these 2'],
    ]);
    expect(seen.map(({ line }) => line).slice(1)).toEqual([
      'DELETE /api/v1/instances/i-abc123',
      'DELETE /api/v1/instances/i-abd456',
    ]);
    expect((await berth(['rm', '--all'], [three], ['n'])).seen).toHaveLength(1);
  });

  it('asks for nothing where there are none, and takes no other words', async () => {
    expect(await berth(['rm', '--all'], [list()])).toMatchObject({ code: 0, said: 'You have no instances.' });
    for (const words of [
      ['rm', '--all', 'train', '-y'],
      ['rm', '-y'],
    ])
      expect(await berth(words, [two])).toMatchObject({ code: 2, seen: [] });
  });
});

it('models say whether they answer, and what they cost', async () => {
  const answer = list(
    { id: 'a', ready_endpoints: 1, context_length: 8192 },
    { id: 'b', ready_endpoints: 0, context_length: null, scales_from_zero: true },
    {
      id: 'c',
      ready_endpoints: 0,
      outside: true,
      price_per_million_tokens: { input: '1', output: '2', currency: 'USD' },
    },
  );
  const { out } = await berth(['models'], [answer]);
  expect(out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['MODEL', 'READY', 'CONTEXT', 'PER MILLION TOKENS', 'NOTES'],
    ['a', 'yes', '8192', '-', '-'],
    ['b', 'starts at a call', '-', '-', '-'],
    ['c', 'no', '-', '1 in, 2 out USD', 'outside the cluster'],
    [''],
  ]);
});

it('older and common names are the same commands', async () => {
  for (const words of [['list'], ['ps'], ['ls']]) expect((await berth(words, [two])).out).toContain('i-abc123');
  const key = list({
    id: 7,
    name: 'laptop',
    type: 'ssh-ed25519',
    fingerprint: 'SHA256:x',
    created_at: '2026-01-01T00:00:00Z',
  });
  expect((await berth(['keys'], [key])).out).toBe((await berth(['ssh-keys'], [key])).out);
  const removed = await berth(['ssh-keys', 'rm', 'laptop'], [key, json(200, {})]);
  expect([removed.code, removed.seen[1]?.line]).toEqual([0, 'DELETE /api/v1/ssh-keys/7']);
});

it('ls -w has a line for each change, over a connection that breaks', async () => {
  const event = (type: string, id: number, data: unknown): string =>
    `event: ${type}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
  const snapshot = event('snapshot', 1, { data: [FIRST] });
  const stopped = event('instance', 2, { ...FIRST, state: 'stopped' });
  const gone = event('deleted', 3, { id: 'i-abc123' });
  const answers = [stream(snapshot, false), stream(`${stopped}${gone}`), refuse(401, 'invalid_api_key', 'Over.')];
  const { out, said, seen } = await berth(['ls', '-w'], answers);
  expect(out).toMatch(/^ID +STATE .*\ni-abc123 +running .*\ni-abc123 +stopped .*\n$/);
  expect(said).toContain('i-abc123 is gone.');
  expect(seen.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '1', '3']);
});

describe('berth open', () => {
  it('asks for a port and a page, and prints an address where there is no screen', async () => {
    const link = json(201, { object: 'link', instance_id: 'i-abc123', port: 7860, url: 'https://x.example.com/?t=1' });
    const { code, out, seen } = await berth(['open', 'i-abc123', '7860', '--path', '/docs'], [json(200, FIRST), link]);
    expect([code, out]).toEqual([0, 'https://x.example.com/?t=1\n']);
    expect([seen[1]?.line, JSON.parse(seen[1]?.body ?? '')]).toEqual([
      'POST /api/v1/instances/i-abc123/links',
      { port: 7860, path: '/docs' },
    ]);
    expect((await berth(['open', 'i-abc123', '99999'], [two])).code).toBe(2);
  });

  it('without an instance means the dashboard', async () => {
    for (const name of ['open', 'dashboard'])
      expect((await berth([name], [two])).out).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/dashboard\n$/);
  });
});

describe('the columns of a text', () => {
  it('are those of its graphemes', () => {
    expect(['abc', 'é', 'e\u0301', '漢字', '👩‍👩‍👧', '🇩🇪', 'ｱ'].map(widthOf)).toEqual([3, 1, 1, 4, 2, 2, 1]);
    // What is drawn in a column of its own, though it is one grapheme with the letter before it; and what is not drawn.
    expect(['ก\u0e33', 'ｶﾞ', '\u0e01\u0e34', 'a\u200bb', '\u00ad', '\ufe10'].map(widthOf)).toEqual([2, 2, 1, 2, 0, 2]);
    expect(fitted('漢字漢字', 6)).toBe('漢字\u2026 ');
    expect(fitted('e\u0301e\u0301e\u0301', 2)).toBe('e\u0301\u2026');
    expect(fitted('ab', 4)).toBe('ab  ');
    expect(wrapped('one two three', 7)).toEqual(['one two', 'three']);
    expect(wrapped('averylongword x', 5)).toEqual(['averylongword', 'x']);
  });
});

it('a chart has the largest value of each column, and a gap where nothing was measured', () => {
  expect(chart([0, 1, null, 4], 4, 4)).toBe('\u2581\u2583 \u2588');
  expect(chart([0, 4, 0, 0, null, null], 3, 4)).toBe('\u2588\u2581 ');
  expect([999, 1500, 123_456_789, 8e10].map(bytesOf)).toEqual(['999 B', '1.5 KB', '123 MB', '80.0 GB']);
});

describe('profiles', () => {
  let home: string;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'berth-profiles-'));
  });
  afterEach(() => rm(home, { recursive: true }));

  const bare = { BERTH_URL: '', BERTH_API_KEY: '' };

  it('keep the logins to several servers, and one is chosen for a command or for the next ones', async () => {
    const env = { ...bare, HOME: home };
    await storeAccess({ HOME: home }, { url: 'http://127.0.0.1:1/api/v1', key: 'berth_one' });
    const path = await storeAccess(
      { HOME: home, BERTH_PROFILE: 'work' },
      { url: 'http://127.0.0.1:2/api/v1', key: 'berth_two' },
    );
    expect([path, (await stat(path)).mode & 0o777]).toEqual([join(home, '.config/berth/access-work.json'), 0o600]);
    const listed = await berth(['profiles'], [two], [], { env });
    expect(listed.out).toMatch(
      /^default +http:\/\/127\.0\.0\.1:1\/api\/v1 +yes\nwork +http:\/\/127\.0\.0\.1:2\/api\/v1 +-$/m,
    );
    const server = async (...words: string[]) => (await berth(words, [two], [], { env })).out;
    expect(await server('open')).toBe('http://127.0.0.1:1/dashboard\n');
    expect(await server('--profile', 'work', 'open')).toBe('http://127.0.0.1:2/dashboard\n');
    expect(await server('--profile=work', 'open')).toBe('http://127.0.0.1:2/dashboard\n');
    expect((await berth(['profiles', 'use', 'work'], [two], [], { env })).code).toBe(0);
    expect(await server('open')).toBe('http://127.0.0.1:2/dashboard\n');
    expect(await readFile(join(home, '.config/berth/profile'), 'utf8')).toBe('work\n');
    const unknown = await berth(['profiles', 'use', 'wrok'], [two], [], { env });
    expect([unknown.code, unknown.said]).toEqual([4, expect.stringContaining('Did you mean work?')]);
  });

  it('without a login are said to have none, and their names are no paths', async () => {
    const env = { ...bare, HOME: home };
    const none = await berth(['--profile', 'work', 'ls'], [two], [], { env });
    expect([none.code, none.said]).toEqual([3, expect.stringContaining('You are not signed in in the profile work.')]);
    for (const name of ['../x', 'a/b', 'A', '']) {
      expect((await berth(['--profile', name, 'ls'], [two], [], { env })).code, name).toBeGreaterThan(1);
    }
  });
});

it('the manual page names every command and every option, and man reads it without a complaint', async () => {
  const page = manual('1.2.3');
  for (const { name, options } of COMMANDS) {
    expect(page).toContain(`.SS berth ${name.replaceAll('-', String.raw`\-`)}`);
    for (const option of Object.keys(options))
      expect(page).toContain(String.raw`\-\-${option.replaceAll('-', String.raw`\-`)}`);
  }
  expect(page.split('\n').filter((line) => /^[.']/.test(line) && !/^\.(TH|SH|SS|TP|PP|br|nf|fi)\b/.test(line))).toEqual(
    [],
  );
  const found = await run('sh', ['-c', 'command -v groff']);
  if (found.code !== 0) return;
  const checked = await run('groff', ['-man', '-Tutf8', '-ww', '-z'], { input: page });
  expect(checked.stderr).toBe('');
});
