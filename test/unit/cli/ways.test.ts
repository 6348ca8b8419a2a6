import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS, findCommand } from '../../../src/cli/table/commands.ts';
import { widthOf } from '../../../src/cli/width.ts';
import { type Answer, berth, json } from '../../support/scripted-cli.ts';
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
  place_in_line: null,
  ssh: null,
  warnings: ['No SSH key opens the instance, so nobody can log in. Add one with berth ssh-keys add FILE.'],
};
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
  if (path === '/ssh-keys')
    return listOf({
      id: 1234567890,
      name: 'laptop',
      type: 'ssh-ed25519',
      fingerprint: `SHA256:${'x'.repeat(43)}`,
      created_at: NOW,
    });
  if (path === '/registries') return listOf({ name: 'ghcr', server: 'ghcr.io', username: 'octocat', created_at: NOW });
  if (path === '/webhooks') return isRead ? listOf(HOOK) : HOOK;
  if (path.startsWith('/webhooks/')) return HOOK;
  if (path === '/templates') return isRead ? listOf(TEMPLATE) : TEMPLATE;
  if (path.startsWith('/templates/')) return TEMPLATE;
  if (path === '/models') return listOf({ id: 'Qwen/Qwen3-235B-A22B-Instruct-2507', owned_by: 'berth' });
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

const server: Answer = (response, seen) => json(200, answerTo(seen.line))(response, seen);

const I = INSTANCE.id;
/** Commands that print something, as they are called; the others are in tests of their own. */
const LINES: readonly string[] = [
  'offers',
  'ls',
  `show ${I}`,
  `events ${I}`,
  `logs ${I}`,
  `top ${I}`,
  `open ${I}`,
  'open',
  `extend ${I} 1h`,
  `set ${I} --label x`,
  `stop ${I} --yes`,
  `rm ${I} --yes`,
  'ssh-keys',
  'templates',
  'templates show 5',
  'registries',
  'webhooks',
  `webhooks show ${HOOK.id}`,
  'usage',
  'models',
  'profiles',
  'whoami',
  `rent --offer ${OFFER.id} --name x --yes --no-wait`,
  `start ${I} --no-wait`,
  'templates create --name train',
  'templates replace 5 --name train',
  `webhooks add ${HOOK.url}`,
  `webhooks rotate ${HOOK.id}`,
];

const words = (line: string): string[] => line.split(' ');

describe.each(LINES)('berth %s', (line) => {
  it('fits a screen of 60 columns', async () => {
    const { code, out } = await berth(words(line), [server], [], { width: COLUMNS });
    expect(code).toBe(0);
    // JSON, addresses and other single words are for copying, and are never cut.
    const lines = out.split('\n').filter((one) => !/https:|"|^\S+ {2,}\S+$/.test(one));
    expect(lines.filter((one) => widthOf(one) > COLUMNS)).toEqual([]);
  });

  it('is whole in a pipe, and has no colours', async () => {
    const { code, out } = await berth(words(line), [server]);
    expect(code).toBe(0);
    expect(['\u001b', '\u2026'].filter((one) => out.includes(one))).toEqual([]);
  });

  it('has JSON for programs, where it has a result', async () => {
    const { command } = findCommand(words(line)) ?? {};
    if (command?.options['json'] === undefined) return;
    const { code, out } = await berth([...words(line), '--json'], [server]);
    const withoutPort = (text: string): string => text.replace(/127\.0\.0\.1:\d+/, '');
    expect(code).toBe(0);
    for (const one of line.startsWith('logs') ? out.trim().split('\n') : [out])
      expect(() => JSON.parse(one)).not.toThrow();
    if (!('output' in command.options)) return;
    const same = await berth([...words(line), '-o', 'json'], [server]);
    expect(withoutPort(same.out)).toBe(withoutPort(out));
  });
});

it('every command that prints JSON is among these, or has a test of its own', () => {
  const elsewhere = ['run', 'ssh-keys add', 'registries add'];
  const here = LINES.map((line) => findCommand(words(line))?.command);
  const printing = COMMANDS.filter(({ options }) => options['json'] !== undefined).map(({ name }) => name);
  expect(printing.filter((name) => !here.some((one) => one?.name === name)).toSorted()).toEqual(elsewhere.toSorted());
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
  let http: Server;
  beforeAll(async () => {
    http = createServer((request, response) =>
      response.end(JSON.stringify(answerTo(`${request.method} ${request.url}`))),
    );
    await new Promise<void>((resolve) => {
      http.listen(0, '127.0.0.1', resolve);
    });
  });
  afterAll(() => http.close());

  async function screen(line: string, more: NodeJS.ProcessEnv = {}): Promise<string> {
    const { NO_COLOR: _none, ...others } = process.env;
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
    const env = { ...others, BERTH_URL: url, BERTH_API_KEY: 'key', ...more };
    const shell = `stty cols ${COLUMNS}; exec '${process.execPath}' '${MAIN}' ${line}`;
    const session = programSession(['sh', '-c', shell], env);
    expect(await session.end('')).toBe(0);
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
