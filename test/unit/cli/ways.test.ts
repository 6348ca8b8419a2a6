import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storeAccess } from '../../../src/cli/settings.ts';
import { COMMANDS, findCommand } from '../../../src/cli/table/commands.ts';
import { widthOf } from '../../../src/cli/width.ts';
import { type Answer, berth, json, stream } from '../../support/scripted-cli.ts';
import { programSession } from '../../support/ssh-terminal.ts';

// Each command in the three ways in which it is used: by a person at a terminal of 60 columns, in a pipe, and by a program.

const MAIN = fileURLToPath(new URL('../../../src/cli/berth.ts', import.meta.url));
const COLUMNS = 60;
const NOW = '2026-11-01T00:00:00Z';

const OFFER = {
  id: 1238818814,
  gpu_name: 'NVIDIA-H100-80GB-HBM3',
  gpu_count: 8,
  gpu_memory_mb: 81559,
  isolation: 'whole',
  mig_profile: null,
  available: 3,
  simulated: true,
  price_per_hour: { on_demand: '19.92', interruptible: '7.20', currency: 'USD' },
  cpu_cores: 16,
  memory_mb: 131_072,
  disk_gb_max: 1000,
  image_cached: true,
  expected_start_seconds: 2.5,
};
const INSTANCE = {
  id: 'i-vdw3lh5adrq5gxhjcqda',
  name: 'überlanger Name 漢字漢字漢字',
  label: 'a label',
  state: 'failed',
  reason: 'ContainerFailed',
  message: 'The program ended with exit code 3.\nTraceback (most recent call last): no such file or directory.',
  gpu_count: 8,
  gpu_name: 'NVIDIA-H100-80GB-HBM3',
  node: 'node-1.europe.example.com',
  simulated: false,
  price_per_hour: '19.92',
  currency: 'USD',
  max_price_per_hour: '19.92',
  usage: null,
  template_image: 'pytorch/pytorch:2.9.0-cuda12.8-cudnn9-devel',
  runtype: 'ssh',
  disk_gb: 40,
  disk_persistent: true,
  disk_policy: 'delete',
  env_names: ['HF_TOKEN'],
  ports: [{ container_port: 8000, protocol: 'tcp' }],
  created_at: NOW,
  stages: {},
  expires_at: null,
  idle_timeout: null,
  max_duration: '12h',
  billed_since: null,
  silences: [],
  place_in_line: null,
  ssh: null,
  warnings: ['No SSH key opens the instance, so nobody can log in. Add one with berth ssh-keys add FILE.'],
};
const LIVE = {
  ...INSTANCE,
  id: 'i-live5adrq5gx',
  state: 'running',
  reason: 'Running',
  message: '',
  ssh: {
    host: 'gpu.example.com',
    port: 2222,
    user: 'i-live5adrq5gx',
    known_hosts: '[gpu.example.com]:2222 ssh-ed25519 AAAA',
  },
};
const KEY = {
  id: 1234567890,
  name: 'laptop',
  type: 'ssh-ed25519',
  fingerprint: `SHA256:${'x'.repeat(43)}`,
  created_at: NOW,
};
const REGISTRY = { name: 'ghcr', server: 'ghcr.io', username: 'octocat', created_at: NOW };
const AMOUNT = { gpu_seconds: 5400, cost: '3.735', currency: 'USD', calls: 0, input_tokens: 0, output_tokens: 0 };
const USED = { used: 1, limit: 10 };
const HOOK = {
  id: 'w-1234567890',
  name: 'the bot of the team',
  url: 'https://hooks.chat.example.com/services/T0/hunter2',
  events: null,
  delivering: { status: false, reason: 'TargetRefused', message: 'The target answered with the status 500.' },
  last_delivered_at: NOW,
  failed_since: NOW,
  dropped: 3,
  created_at: NOW,
  secret: 'whsec_c2VjcmV0',
};
const TEMPLATE = {
  id: 5,
  name: 'train',
  image: INSTANCE.template_image,
  runtype: 'ssh',
  shared: true,
  hash_id: 'abcdef0123456789',
};
const MODEL = {
  id: 'Qwen/Qwen3-235B-A22B-Instruct-2507',
  ready_endpoints: 2,
  context_length: 262_144,
  outside: true,
  price_per_million_tokens: { input: '0.20', cached_input: '0.10', output: '0.60', currency: 'USD' },
};
const HOUR = {
  instance_id: INSTANCE.id,
  step_seconds: 15,
  gpu_source: 'nvidia-smi',
  gpus: [{ uuid: null }],
  data: [
    { name: 'gpu_utilization_ratio', gpu: 0, values: [null, 0, 0.5, 1] },
    { name: 'gpu_memory_used_bytes', gpu: 0, values: [null, 1e9, 2e9, 4e10] },
    { name: 'gpu_memory_limit_bytes', gpu: 0, values: [null, 8e10, 8e10, 8e10] },
    { name: 'cpu_cores', gpu: null, values: [0, 1, 2, 1.5] },
  ],
};
const listOf = (...data: unknown[]) => ({ object: 'list', data });

/** What the server answers, by method and path. */
function answerTo(line: string): unknown {
  const [, path = ''] = /^\S+ \/api\/v1([^?]*)/.exec(line) ?? [];
  const last = path.split('/').at(-1);
  const isRead = line.startsWith('GET');
  if (path.startsWith(`/instances/${LIVE.id}`)) return LIVE;
  if (path === '/offers/search' || path === '/offers') return listOf(OFFER);
  if (last === 'events')
    return listOf({ at: NOW, count: 2, type: 'Warning', reason: 'ContainerFailed', message: INSTANCE.message });
  if (last === 'metrics') return HOUR;
  if (last === 'links')
    return { object: 'link', instance_id: INSTANCE.id, port: 8000, url: 'https://8000-u.example.com/?t=1' };
  if (last === 'logs') {
    return { ...listOf({ id: '1', at: NOW, text: 'a line' }), kept: false, start: 1, truncated: false };
  }
  if (path === '/instances') return isRead ? listOf(INSTANCE) : INSTANCE;
  if (path.startsWith('/instances/')) return INSTANCE;
  if (path === '/ssh-keys') return isRead ? listOf(KEY) : KEY;
  if (path === '/registries') return isRead ? listOf(REGISTRY) : REGISTRY;
  if (path === '/webhooks') return isRead ? listOf(HOOK) : HOOK;
  if (path.startsWith('/webhooks/')) return HOOK;
  if (path === '/templates') return isRead ? listOf(TEMPLATE) : TEMPLATE;
  if (path.startsWith('/templates/')) return TEMPLATE;
  if (path === '/models') return listOf(MODEL);
  if (path === '/usage')
    return {
      from: '2026-11-01',
      to: '2026-11-23',
      group: 'instance',
      items: [{ ...AMOUNT, group: INSTANCE.id, name: INSTANCE.name, product: INSTANCE.gpu_name, open: true }],
      totals: [AMOUNT],
    };
  if (path === '/limits') {
    const counted = {
      instances: USED,
      ssh_keys: USED,
      templates: USED,
      api_keys: USED,
      registries: USED,
      webhooks: USED,
    };
    const caller = { id: 'key/key-bc8a4adb67', name: 'audit', scopes: ['compute:read', 'compute:write', 'models'] };
    const spent = { policies: ['gold'], gpus_used: 1, gpus: [], budget: null, key_budget: null };
    return { ...counted, ...spent, namespace: 'ml-team', caller };
  }
  return {};
}

const WORDS = 'data: {"choices":[{"delta":{"content":"An answer of the model."}}]}\n\ndata: [DONE]\n\n';

const server: Answer = (response, seen) =>
  seen.line.includes('/chat/') ? stream(WORDS)(response, seen) : json(200, answerTo(seen.line))(response, seen);

const [I, L] = [INSTANCE.id, LIVE.id];
/** How each command is called, with what a person types at its question; undefined where a test of its own has all three ways. */
const LINES: Readonly<
  Record<string, readonly (readonly [line: string, question?: RegExp, typed?: string])[] | undefined>
> = {
  login: [['login URL', /not shown\): /, 'key']],
  logout: [['logout']],
  whoami: [['whoami']],
  profiles: [['profiles']],
  'profiles use': [['profiles use work']],
  api: [['api /limits']],
  offers: [['offers'], ['offers --all']],
  rent: [[`rent --offer ${OFFER.id} --name x --yes --no-wait`]],
  // In run.test.ts.
  run: undefined,
  ls: [['ls']],
  show: [[`show ${I}`], [`show ${L}`]],
  logs: [[`logs ${I}`]],
  events: [[`events ${I}`]],
  ssh: [[`ssh ${L}`], [`ssh ${L} nvidia-smi`], ['ssh --config']],
  cp: [[`cp train.py ${L}:/workspace/`]],
  open: [['open'], [`open ${I}`]],
  code: [[`code ${L} --url`], [`code ${L}`]],
  top: [[`top ${I}`]],
  stop: [[`stop ${I} --yes`], [`stop ${I}`]],
  start: [[`start ${I} --no-wait`]],
  extend: [[`extend ${I} 1h`]],
  set: [[`set ${I} --label x`]],
  rm: [[`rm ${I} --yes`], ['rm --all --yes'], [`rm ${I}`, /\[y\/N\] /, 'y']],
  'ssh-keys': [['ssh-keys']],
  'ssh-keys add': [['ssh-keys add'], ['ssh-keys add HOME/.ssh/id_ed25519.pub --name laptop']],
  'ssh-keys rm': [['ssh-keys rm laptop']],
  templates: [['templates']],
  'templates show': [['templates show 5']],
  'templates create': [['templates create --name train']],
  'templates replace': [['templates replace 5 --name train']],
  'templates rm': [['templates rm 5']],
  registries: [['registries']],
  'registries add': [['registries add ghcr ghcr.io octocat', /assword/, 'secret']],
  'registries rm': [['registries rm ghcr']],
  webhooks: [['webhooks']],
  'webhooks add': [[`webhooks add ${HOOK.url}`]],
  'webhooks show': [[`webhooks show ${HOOK.id}`]],
  'webhooks rotate': [[`webhooks rotate ${HOOK.id}`]],
  'webhooks rm': [[`webhooks rm ${HOOK.id}`]],
  usage: [['usage'], ['usage --by day']],
  models: [['models']],
  chat: [['chat What is a GPU?'], ['chat --model M Why?']],
};
const ROWS = Object.entries(LINES).flatMap(([name, rows = []]) => rows.map((row) => [row[0], name, row] as const));

it('every command is among these', () => {
  expect(Object.keys(LINES).toSorted()).toEqual(COMMANDS.map(({ name }) => name).toSorted());
});

/** Without colours. */
// oxlint-disable-next-line no-control-regex
const bare = (text: string): string => text.replaceAll(/\u001b\[[0-9;?]*[a-zA-Z]/g, '');
/** JSON, addresses and other single words are for copying, and are never cut; sentences go on where the screen ends. */
const MAY_BE_LONG = /https?:|:\/\/|"|: berth |^\S+ {2,}\S+$|\[y\/N\] y\s*$|[.:?] ?$/;

function tooLong(text: string): string[] {
  return bare(text)
    .split(/\r?\n/)
    .filter((one) => !MAY_BE_LONG.test(one) && widthOf(one) > COLUMNS);
}

let http: Server;
let url: string;
let home: string;
let programs: string;
beforeAll(async () => {
  http = createServer((request, response) => {
    const line = `${request.method} ${request.url}`;
    server(response, { line, headers: request.headers, body: '' });
  });
  await new Promise<void>((resolve) => {
    http.listen(0, '127.0.0.1', resolve);
  });
  url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  home = await mkdtemp(join(tmpdir(), 'berth-ways-'));
  await mkdir(join(home, '.ssh'));
  await writeFile(join(home, '.ssh/id_ed25519.pub'), 'ssh-ed25519 AAAA me@laptop\n');
  programs = join(home, 'programs');
  await mkdir(programs);
  for (const name of ['ssh', 'scp', 'code', 'xdg-open']) {
    await writeFile(join(programs, name), '#!/bin/sh\nexit 0\n', { mode: 0o755 });
  }
});
afterAll(async () => {
  http.closeAllConnections();
  http.close();
  await rm(home, { recursive: true });
});

async function environment(): Promise<Record<string, string>> {
  const env = { HOME: home, PATH: `${programs}:/usr/bin:/bin`, BERTH_URL: url };
  await storeAccess({ ...env, BERTH_PROFILE: 'work' }, { url, key: 'key' });
  return env;
}

const wordsOf = (line: string): string[] =>
  line.split(' ').map((word) => (word === 'URL' ? url : word.replace('HOME', home)));

/** The command in this process: in a pipe, or on a screen of that width. */
async function called(words: readonly string[], typed: string | undefined, width?: number) {
  const env = await environment();
  return await berth(words, [server], typed === undefined ? [] : [typed], { env, ...(width && { width }) });
}

describe.each(ROWS)('berth %s', (line, name, [, question, typed]) => {
  it('works in a terminal of 60 columns, and fits', async () => {
    const { NO_COLOR: _none, ...others } = process.env;
    const env = { ...others, BERTH_API_KEY: 'key', ...(await environment()) };
    const words = wordsOf(line).map((word) => `'${word}'`);
    const shell = `stty cols ${COLUMNS}; exec '${process.execPath}' '${MAIN}' ${words.join(' ')}`;
    const session = programSession(['sh', '-c', shell], env);
    if (question !== undefined) await session.type('', question);
    expect([await session.end(typed === undefined ? '' : `${typed}\r`), session.screen]).toEqual([0, session.screen]);
    expect(tooLong(session.screen)).toEqual([]);
    expect(tooLong((await called(wordsOf(line), typed, COLUMNS)).out)).toEqual([]);
  });

  it('is whole in a pipe, and has no colours', async () => {
    const { code, out, said } = await called(wordsOf(line), typed);
    expect([code, said]).toEqual([0, said]);
    expect(['\u001b', '\u2026'].filter((one) => out.includes(one))).toEqual([]);
  });

  it('has JSON for programs, where it has a result, and refuses to where not', async () => {
    const { command } = findCommand(wordsOf(line)) ?? {};
    expect(command?.name).toBe(name);
    const words = wordsOf(line);
    if (command?.options['json'] === undefined) {
      const refused = await called([...words.slice(0, name.split(' ').length), '--json'], typed);
      expect([refused.code, refused.said]).toEqual([2, expect.stringContaining('has no option --json')]);
      return;
    }
    const { code, out } = await called([...words, '--json'], typed);
    const withoutPort = (text: string): string => text.replace(/127\.0\.0\.1:\d+/, '');
    expect(code).toBe(0);
    for (const one of line.startsWith('logs') ? out.trim().split('\n') : [out])
      expect(() => JSON.parse(one)).not.toThrow();
    if (!('output' in command.options)) return;
    const same = await called([...words, '-o', 'json'], typed);
    expect(withoutPort(same.out)).toBe(withoutPort(out));
  });
});

describe.each(['', ...COMMANDS.map(({ name }) => name)])('berth %s --help', (name) => {
  it('fits a screen of 60 columns, and 80 in a pipe', async () => {
    const words = [...name.split(' ').filter(Boolean), '--help'];
    const narrow = (await berth(words, [server], [], { width: COLUMNS })).out.split('\n');
    // Lines to copy.
    expect(narrow.filter((one) => widthOf(one) > COLUMNS && !/^(Usage:|Also:|  berth )/.test(one))).toEqual([]);
    const wide = (await berth(words, [server])).out.split('\n');
    expect(wide.filter((one) => widthOf(one) > 80)).toEqual([]);
  });
});

describe('on a narrow screen', () => {
  it('what tells offers apart stays', async () => {
    const { out } = await berth(['offers'], [server], [], { width: COLUMNS });
    expect(out).toContain('8 x H100-80GB-HBM3');
    expect(out).toContain('19.92 USD');
    expect(out).toContain('simulated');
  });

  it('sentences go on in the lines below', async () => {
    const { out } = await berth(['events', I], [server], [], { width: COLUMNS });
    expect(out.replaceAll(/\s+/g, ' ')).toContain(
      'The program ended with exit code 3. Traceback (most recent call last): no such file or directory.',
    );
  });
});

describe('-o', () => {
  it('wide has all columns on any screen, and name the ids', async () => {
    const { out } = await berth(['ls', '-o', 'wide'], [server], [], { width: COLUMNS });
    expect(out).toContain(INSTANCE.template_image);
    expect(out).toContain('node-1.europe.example.com');
    expect((await berth(['ls'], [server])).out).not.toContain('node-1.europe.example.com');
    expect((await berth(['ls', '-o', 'name'], [server])).out).toBe(`${I}\n`);
    expect((await berth(['offers', '-o', 'name'], [server])).out).toBe('1238818814\n');
  });

  it('is refused for what it does not know', async () => {
    const { code, said, seen } = await berth(['ls', '-o', 'wid'], [server]);
    expect([code, seen]).toEqual([2, []]);
    expect(said).toBe('berth: --output wid is not valid: write json or wide or name.\nDid you mean wide?');
  });
});

describe('in a terminal of 60 columns', () => {
  async function screen(line: string, more: NodeJS.ProcessEnv = {}): Promise<string> {
    const { NO_COLOR: _none, ...others } = process.env;
    const env = { ...others, BERTH_URL: url, BERTH_API_KEY: 'key', ...more };
    const shell = `stty cols ${COLUMNS}; exec '${process.execPath}' '${MAIN}' ${line}`;
    const session = programSession(['sh', '-c', shell], env);
    expect(await session.end()).toBe(0);
    return session.screen;
  }

  it('states have colours, unless NO_COLOR says no', async () => {
    expect(await screen('ls')).toContain('\u001b[31mfailed\u001b[0m');
    expect(await screen('ls', { NO_COLOR: '1' })).not.toContain('\u001b');
    expect(await screen(`show ${I}`)).toContain('\u001b[31mfailed (ContainerFailed)\u001b[0m');
  });

  it('the hour of an instance is a chart', async () => {
    const lines = (await screen(`top ${I}`)).split('\r\n').filter(Boolean);
    expect(lines.map((line) => line.split(/ {2,}/)[0])).toEqual(['GPU 0 load', 'GPU 0 memory', 'CPU cores']);
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(COLUMNS);
    expect(lines[0]).toMatch(/100 % {3}\u2581\u2585\u2588$/);
  });
});
