import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ERRORS } from '../../../src/http/interface/errors/catalogue.ts';
import { newEd25519Key } from '../../../src/ssh/login/ed25519-key.ts';
import { type Answer, berth, drop, json, KEY, list, refuse, stream } from '../../support/scripted-cli.ts';

const OFFER = {
  id: 7,
  gpu_name: 'NVIDIA-L4',
  gpu_count: 1,
  gpu_memory_mb: 23034,
  isolation: 'whole',
  mig_profile: null,
  available: 1,
  available_by_preemption: 0,
  simulated: false,
  price_per_hour: { on_demand: '0.50', interruptible: '0.20', currency: 'USD' },
  cpu_cores: 4,
  memory_mb: 16384,
  disk_gb_max: 100,
  image_cached: true,
};
/** What an order has that names no price: that of the offer, on demand. */
const FOR_ITS_PRICE = { max_price_per_hour: '0.50' };
const RECORD = {
  id: 'i-1',
  name: null,
  state: 'running',
  reason: 'Running',
  message: '',
  stages: { ready: '2026-01-01T00:00:01Z' },
  created_at: '2026-01-01T00:00:00Z',
  place_in_line: null,
  simulated: false,
  ssh: { command: 'ssh' },
  warnings: ['No SSH key opens it.'],
};
const READY = stream(`event: snapshot\nid: 1\ndata: ${JSON.stringify(RECORD)}\n\n`);

it.each([
  [401, 'invalid_api_key', 3],
  [401, 401, 3],
  [403, 'insufficient_scope', 3],
  [403, 'tenant_limit', 1],
  [404, 'template_not_found', 4],
  [409, 'offer_unavailable', 5],
  [422, 'validation_failed', 1],
  [429, 'rate_limit_exceeded', 6],
  [503, 'overloaded', 6],
])('%i %s: the words of the server, and its exit status', async (status, code, exit) => {
  const result = await berth(['usage'], [refuse(status, code, 'Because \u001b[2Jof this.')]);
  expect([result.code, result.out]).toEqual([exit, '']);
  expect(result.said).toContain('berth: Because ?[2Jof this.');
  expect(result.said).not.toContain(KEY);
});

it('a server that is no Berth, or none at all, is said to be so', async () => {
  const page: Answer = (response) => void response.writeHead(502).end('<html>');
  expect(await berth(['ls'], [page])).toMatchObject({
    code: 6,
    said: 'berth: The server answered with the status 502.\nRun the command again in some seconds.',
  });
  const odd = await berth(['ls'], [json(409, { error: { message: { a: 1 }, code: 'toString', alternatives: 7 } })]);
  expect([odd.code, odd.said]).toEqual([1, expect.stringContaining('the status 409.\nberth ls --help')]);
  const gone = await berth(['ls'], [drop]);
  expect([gone.code, gone.said]).toEqual([6, expect.stringContaining('does not answer')]);
});

/** What only others than this program can meet: the dashboard, and who writes HTTP by hand. */
const NOT_OURS = new Set(['not_signed_in', 'not_allowed', 'dashboard_unavailable']);

it.each(Object.entries(ERRORS).filter(([code]) => !NOT_OURS.has(code)))(
  'the words of the server for %s are followed by a next step',
  async (code, { status }) => {
    const { said } = await berth(['ls'], [refuse(status, code, 'Because.')]);
    expect(said).toMatch(/^berth: Because\.\n[A-Za-z].{10,}$/);
    expect(said).not.toContain('undefined');
  },
);

it('an endpoint that the server does not have is a sign of another version, which it hands out', async () => {
  const { said } = await berth(['ls'], [refuse(404, 'not_found', 'No endpoint has this path.')]);
  expect(said).toMatch(/npm install -g http:\/\/127\.0\.0\.1:\d+\/cli\/berth\.tgz$/);
});

it('the key follows no redirect', async () => {
  const result = await berth(['ls'], [json(307, {}, { location: 'http://127.0.0.1:1/elsewhere' })]);
  expect([result.code, result.seen.length]).toEqual([1, 1]);
  expect(result.said).toContain('The key is not sent there.');
});

it('a rental that lost its answer is sent again under the same key, and nothing is rented twice', async () => {
  const answers = [list(OFFER), drop, refuse(503, 'claim_timeout', 'Late.'), json(201, RECORD), READY];
  const result = await berth(['rent', '--gpu', 'l4', '--yes'], answers);
  expect([result.code, result.out]).toEqual([0, 'i-1\n']);
  const posts = result.seen.filter(({ line }) => line === 'POST /api/v1/instances');
  expect(posts).toHaveLength(3);
  expect(new Set(posts.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
  expect(posts.map(({ body }) => JSON.parse(body) as unknown)).toEqual(
    [1, 2, 3].map(() => ({ ask_id: 7, ...FOR_ITS_PRICE })),
  );
  expect(result.said).toContain('Rent 1 x NVIDIA-L4 for 0.50 USD per hour.');
  expect(result.said).toContain('Warning: No SSH key opens it.');
  expect(result.said).toContain('Log in with: berth ssh i-1');
});

it('who does not say yes rents nothing', async () => {
  const result = await berth(['rent', '--gpu', 'l4'], [list(OFFER)], ['']);
  expect([result.code, result.seen.length]).toEqual([1, 1]);
  expect(result.said).toContain('Rent 1 x NVIDIA-L4 for 0.50 USD per hour? [y/N]');
});

it('bare, it asks: a part of a name, a number, and yes', async () => {
  const other = { ...OFFER, id: 8, gpu_name: 'NVIDIA-H100' };
  const answers = [list(OFFER, other), list({ id: 1 }), json(201, RECORD), READY];
  const result = await berth(['rent'], answers, ['nothing', 'h100', '1', 'y']);
  expect(result.code).toBe(0);
  expect(result.said).toContain('No free offer is called nothing: write a number');
  expect(JSON.parse(result.seen[2]?.body ?? '')).toEqual({ ask_id: 8, ...FOR_ITS_PRICE });
});

it('without a free place it waits in line for the kind that would do, when it may', async () => {
  const taken = { ...OFFER, available: 0 };
  const none = await berth(['rent', '--gpu', 'l4', '--yes'], [list(taken)]);
  expect([none.code, none.said]).toEqual([5, expect.stringContaining('Add --queue to wait in line.')]);
  const answers = [list(taken), json(201, RECORD), READY];
  const result = await berth(['rent', '--gpu', 'l4', '--queue', '--yes'], answers);
  expect(JSON.parse(result.seen[1]?.body ?? '')).toEqual({
    on_no_capacity: 'queue',
    gpu: { name: 'NVIDIA-L4', count: 1, isolation: 'whole' },
  });
});

describe('who names a GPU', () => {
  const whole = { ...OFFER, gpu_name: 'NVIDIA-A100-SXM4-80GB', available: 0 };
  const slice = {
    ...OFFER,
    id: 8,
    gpu_name: 'NVIDIA-A100-SXM4-80GB-MIG-1g.10gb',
    isolation: 'mig',
    mig_profile: '1g.10gb',
    price_per_hour: { ...OFFER.price_per_hour, on_demand: '0.20' },
  };
  const shared = { ...OFFER, id: 9, gpu_name: 'NVIDIA-A100-SXM4-80GB-SHARED', isolation: 'time_sliced' };
  const rented = async (...words: string[]) => {
    const { code, seen } = await berth(
      ['rent', ...words, '--yes', '--no-wait'],
      [list(slice, shared, whole), json(201, RECORD)],
    );
    return [code, seen[1] === undefined ? undefined : (JSON.parse(seen[1].body) as unknown)];
  };

  it('gets no slice of one in its place, and is told which is free', async () => {
    for (const [offer, what] of [
      [slice, 'A part of one is free (MIG 1g.10gb): add --kind mig.'],
      [shared, 'A part of one is free (time-sliced): add --kind time-sliced.'],
    ] as const) {
      const { code, said, seen } = await berth(['rent', '--gpu', 'a100', '--yes'], [list(offer, whole)]);
      expect([code, seen.length]).toEqual([5, 1]);
      expect(said).toBe(`berth: No whole GPU of this name is free.\n${what} Or wait in line with --queue.`);
    }
    const line = { on_no_capacity: 'queue', gpu: { name: whole.gpu_name, count: 1, isolation: 'whole' } };
    expect(await rented('--gpu', 'a100', '--queue')).toEqual([0, line]);
  });

  it('gets a slice where that is what was named, or where there is no whole one', async () => {
    expect(await rented('--gpu', 'a100 mig')).toEqual([0, { ask_id: 8, max_price_per_hour: '0.20' }]);
    expect(await rented('--gpu', '1g.10gb')).toEqual([0, { ask_id: 8, max_price_per_hour: '0.20' }]);
    expect(await rented('--gpu', 'a100', '--offer', '9')).toEqual([0, { ask_id: 9, ...FOR_ITS_PRICE }]);
    expect(await rented()).toEqual([0, { ask_id: 8, max_price_per_hour: '0.20' }]);
    expect(await rented('--offer', '9', '--interruptible')).toEqual([
      0,
      { type: 1, ask_id: 9, max_price_per_hour: '0.20' },
    ]);
    expect(await rented('--max-price', '0.30')).toEqual([0, { ask_id: 8, max_price_per_hour: '0.30' }]);
    const only = await berth(['rent', '--gpu', 'a100', '--yes', '--no-wait'], [list(slice), json(201, RECORD)]);
    expect(only.said).toContain('Rent 1 x NVIDIA-A100-SXM4-80GB-MIG-1g.10gb (MIG 1g.10gb) for 0.20 USD per hour.');
  });

  it('says which kind, in words that the server has', async () => {
    const { seen } = await berth(['offers', '--kind', 'time-sliced'], [list(shared)]);
    expect(JSON.parse(seen[0]?.body ?? '')).toEqual({ isolation: 'time_sliced' });
  });
});

describe('berth rent', () => {
  it('logs in with --ssh, and opens VS Code with --code, once there is a login', async () => {
    const home = await mkdtemp(join(tmpdir(), 'berth-enter-'));
    onTestFinished(() => rm(home, { recursive: true }));
    for (const name of ['ssh', 'code'])
      await writeFile(join(home, name), `#!/bin/sh\necho ${name} "$@" >>'${home}/called'\nexit 3\n`, { mode: 0o755 });
    const ssh = { command: 'ssh', host: 'gpu.example.com', port: 2222, user: 'i-1.team', known_hosts: null };
    const record = { ...RECORD, id: 'i-1a2b3c4d5e6f', ssh };
    const ready = stream(`event: snapshot\nid: 1\ndata: ${JSON.stringify(record)}\n\n`);
    const answers = [list(OFFER), json(201, record), ready, list(record)];
    const words = ['rent', '--gpu', 'l4', '--yes', '--ssh', '--code'];
    const { code, out } = await berth(words, answers, [], {
      env: { HOME: home, PATH: `${home}:${process.env['PATH']}` },
    });
    expect([code, out.split('\n')[0]]).toEqual([3, record.id]);
    expect(await readFile(join(home, 'called'), 'utf8')).toMatch(
      /^code --remote ssh-remote\+i-1a2b3c4d5e6f \/workspace\nssh -p 2222 -- i-1\.team@gpu\.example\.com\n$/,
    );
    const refused = await berth([...words, '--no-wait'], answers);
    expect([refused.code, refused.seen]).toEqual([2, []]);
  });
});

it('rents on demand what interruptible instances end for, and says so of no other', async () => {
  const taken = { ...OFFER, available: 0, available_by_preemption: 1 };
  const result = await berth(['rent', '--gpu', 'l4', '--yes'], [list(taken), json(201, RECORD), READY]);
  expect([result.code, JSON.parse(result.seen[1]?.body ?? '')]).toEqual([0, { ask_id: 7, ...FOR_ITS_PRICE }]);
  const cheaper = await berth(['rent', '--gpu', 'l4', '--interruptible', '--yes'], [list(taken)]);
  expect(cheaper.code).toBe(5);
  const offers = async (...words: string[]) => (await berth(['offers', '--all', ...words], [list(taken)])).out;
  expect(await offers()).toMatch(/ 0 +0\.50 USD +1 more by preemption, image is there$/m);
  expect(await offers('--interruptible')).not.toContain('preemption');
});

it('a start that fails is a failure, in the words of the instance', async () => {
  const failed = {
    ...RECORD,
    state: 'failed',
    reason: 'ImagePullFailed',
    message: 'The registry says no.',
    stages: {},
  };
  const answers = [list(OFFER), json(201, RECORD), stream(`data: ${JSON.stringify(failed)}\n\n`)];
  const result = await berth(['rent', '--offer', '7', '--yes'], answers);
  expect([result.code, result.out]).toEqual([1, '']);
  expect(result.said).toContain('berth: i-1 is failed: The registry says no.\nberth events i-1 tells');
});

it('berth show says how an instance that is over starts again', async () => {
  const whole = {
    ...RECORD,
    ports: [],
    env_names: [],
    usage: null,
    node: null,
    price_per_hour: null,
    disk_gb: null,
    billed_since: null,
    silences: [],
  };
  const failed = { ...whole, state: 'failed', reason: 'ContainerFailed', message: 'It ended.' };
  expect((await berth(['show', 'i-1'], [json(200, failed)])).out).toMatch(/^next step +berth start i-1$/m);
  const { code, out } = await berth(['show', 'i-1'], [json(200, whole)]);
  expect([code, out.includes('next step')]).toEqual([0, false]);
  // Of what runs too: two hours that have ended, and an hour until now.
  const since = new Date(Date.now() - 3_600_000).toISOString();
  const runs = {
    ...whole,
    usage: { gpu_seconds: 7200, cost: '1.00', currency: 'USD' },
    billed_since: since,
    price_per_hour: '0.50',
    currency: 'USD',
  };
  expect((await berth(['show', 'i-1'], [json(200, runs)])).out).toMatch(/^cost so far +1\.500\d USD, and it runs$/m);
  const over = await berth(['show', 'i-1'], [json(200, { ...runs, billed_since: null })]);
  expect(over.out).toMatch(/^cost so far +1\.0000 USD$/m);
});

describe('berth start', () => {
  const stopped = { ...RECORD, state: 'stopped', reason: 'Stopped', desired_state: 'stopped' };
  const asked = { ...stopped, desired_state: 'running' };
  const runs = { ...RECORD, desired_state: 'running' };

  async function start(before: object, ...events: object[]) {
    const frames = events.map((one) => `event: instance\ndata: ${JSON.stringify(one)}\n\n`).join('');
    const answers = [json(200, before), json(200, { ...before, desired_state: 'running' }), stream(frames)];
    const result = await berth(['start', 'i-1'], answers);
    expect(JSON.parse(result.seen[1]?.body ?? '')).toEqual({ state: 'running' });
    return [result.code, result.said];
  }

  it.each([
    ['a replica and the controller, which may not have seen the request yet', stopped, [stopped, asked, runs]],
    ['a replica that is behind what another one said', stopped, [{ ...stopped, message: 'Before.' }, asked, runs]],
    ['an instance that still stops', { ...stopped, state: 'stopping', reason: 'Stopping' }, [asked, runs]],
  ])('waits for %s', async (_whom, before, events) => {
    expect(await start(before, ...events)).toEqual([0, 'i-1 runs.']);
  });

  it('ends when somebody stops the instance again', async () => {
    expect(await start(stopped, asked, stopped)).toEqual([1, expect.stringContaining('i-1 is stopped')]);
  });
});

it('a followed log goes on after the last line that was printed, and ends with the log', async () => {
  const line = (n: number): string => `event: line\nid: ${n}\ndata: {"id":"${n}","at":"t","text":"line ${n}"}\n\n`;
  const answers = [
    json(200, RECORD),
    stream(`${line(1)}${line(2)}event: line\nid: 3\ndata: {"id"`, false),
    refuse(503, 'log_unavailable', 'Not now.'),
    stream(`${line(3)}event: end\ndata: {"state":"stopped","reason":"Stopped","message":"It was stopped."}\n\n`),
  ];
  const result = await berth(['logs', '-f', '--tail', '5', 'i-1'], answers);
  expect([result.code, result.out]).toEqual([0, 'line 1\nline 2\nline 3\n']);
  expect(result.said).toContain('The log ends: stopped: It was stopped.');
  expect(result.seen.slice(1).map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '2', '2']);
  expect(result.seen[1]?.line).toBe('GET /api/v1/instances/i-1/logs?follow=true&tail=5');
});

it('a followed log goes on at a replica that has yet to learn the key, and ends where the key is revoked', async () => {
  const line = (n: number): string => `event: line\nid: ${n}\ndata: {"id":"${n}","at":"t","text":"line ${n}"}\n\n`;
  const refused = refuse(401, 'invalid_api_key', 'Invalid API key.');
  const end = 'event: end\ndata: {"reason":"Stopped"}\n\n';
  const answers = [json(200, RECORD), stream(line(1), false), refused, refused, stream(`${line(2)}${end}`)];
  const result = await berth(['logs', '-f', 'i-1'], answers);
  expect([result.code, result.out]).toEqual([0, 'line 1\nline 2\n']);
  const revoked = await berth(['logs', '-f', 'i-1'], [json(200, RECORD), stream(line(1), false), refused]);
  expect([revoked.code, revoked.said]).toEqual([3, expect.stringContaining('berth: Invalid API key.')]);
  const never = await berth(['logs', '-f', 'i-1'], [json(200, RECORD), refused]);
  expect([never.code, never.seen.length]).toEqual([3, 2]);
});

describe('berth api', () => {
  it('calls any path with the key, and prints the answer', async () => {
    for (const path of ['/limits?a=b', 'limits?a=b', '/api/v1/limits?a=b']) {
      const { code, out, seen } = await berth(['api', path], [json(200, { gpus_used: 1 })]);
      expect([code, JSON.parse(out), seen[0]?.line]).toEqual([0, { gpus_used: 1 }, 'GET /api/v1/limits?a=b']);
      expect(seen[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
    }
  });

  it('sends JSON of its input, and nothing that is none', async () => {
    const words = ['api', '/instances/i-1', '--input', '-'];
    const { seen } = await berth([...words, '-X', 'PATCH'], [json(200, {})], ['{"name":"x"}']);
    expect([seen[0]?.line, seen[0]?.body]).toEqual(['PATCH /api/v1/instances/i-1', '{"name":"x"}']);
    expect((await berth(words, [json(200, {})], ['{}'])).seen[0]?.line).toBe('POST /api/v1/instances/i-1');
    expect(await berth(words, [json(200, {})], ['name=x'])).toMatchObject({ code: 2, seen: [] });
  });

  it('ends as other commands do where the server refuses', async () => {
    expect((await berth(['api', '/instances/x'], [refuse(404, 'instance_not_found', 'No.')])).code).toBe(4);
  });
});

it('an empty log is said to be empty, where all of it was asked for', async () => {
  const log = json(200, { data: [], kept: false, start: 1, truncated: false });
  const { out, said } = await berth(['logs', 'i-1'], [json(200, RECORD), log]);
  expect([out, said]).toEqual(['', 'Nothing was written yet. berth logs -f waits for it.']);
  for (const more of [['--tail', '0'], ['--json']])
    expect((await berth(['logs', 'i-1', ...more], [json(200, RECORD), log])).said).toBe('');
});

it('a name stands for its instance, and two of the same name for none', async () => {
  const missing = refuse(404, 'instance_not_found', 'No instance.');
  const named = { ...RECORD, name: 'mine', disk_policy: 'delete' };
  const removed = await berth(['rm', 'mine', '-y'], [missing, list(named), json(200, {})]);
  expect([removed.code, removed.seen[2]?.line]).toEqual([0, 'DELETE /api/v1/instances/i-1']);
  const both = await berth(['rm', 'mine', '-y'], [missing, list(named, { ...named, id: 'i-2' })]);
  expect([both.code, both.said]).toEqual([2, expect.stringContaining('i-1, i-2')]);
});

it('stop says what becomes of the disk, and asks where it is lost', async () => {
  const kept = { ...RECORD, node: 'n', disk_persistent: true, disk_gb: 10 };
  const stopped = await berth(['stop', 'i-1'], [json(200, kept), json(200, kept)]);
  expect([stopped.code, stopped.said]).toEqual([0, expect.stringContaining('Its disk stays.')]);
  const lost = { ...kept, disk_persistent: false };
  const asked = await berth(['stop', 'i-1'], [json(200, lost), json(200, lost)]);
  expect([asked.code, asked.seen.length]).toEqual([2, 1]);
  const no = await berth(['stop', 'i-1'], [json(200, lost), json(200, lost)], ['n']);
  expect([no.code, no.seen.length]).toEqual([1, 1]);
  expect(no.said).toContain('/workspace (10 GB) will be deleted');
  const yes = await berth(['stop', 'i-1', '--yes'], [json(200, lost), json(200, lost)]);
  expect([yes.code, yes.seen[1]?.body]).toEqual([0, '{"state":"stopped"}']);
  expect(yes.said).toContain('/workspace is deleted.');
  expect(yes.said).not.toContain('stays');
  // What has no place has no disk to lose, and neither has what is simulated.
  for (const one of [
    { ...lost, node: null },
    { ...lost, simulated: true },
  ]) {
    expect((await berth(['stop', 'i-1'], [json(200, one), json(200, one)])).code).toBe(0);
  }
});

it('extend says from when the time of a start counts, which is no login', async () => {
  const kept = { ...RECORD, max_duration: '1h', expires_at: null };
  const answers = [json(200, kept), json(200, { ...kept, max_duration: '2h' })];
  const { said, code } = await berth(['extend', 'i-1', '1h'], answers);
  expect([code, said]).toEqual([0, expect.stringContaining('may run for 2h from when its container first runs')]);
});

it('chat streams the answer, and takes the only model', async () => {
  const chunk = (content: string): string => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
  const answers = [list({ id: 'qwen' }), stream(`${chunk('Hel')}${chunk('lo')}data: [DONE]\n\n`)];
  const result = await berth(['chat', 'how', 'are', 'you'], answers);
  expect([result.code, result.out]).toEqual([0, 'Hello\n']);
  expect(JSON.parse(result.seen[1]?.body ?? '')).toEqual({
    model: 'qwen',
    messages: [{ role: 'user', content: 'how are you' }],
    stream: true,
  });
});

it('a password of a registry comes from the terminal, and is not shown', async () => {
  const result = await berth(
    ['registries', 'add', 'ghcr', 'ghcr.io', 'me'],
    [json(201, { name: 'ghcr' })],
    ['hunter2'],
  );
  expect(JSON.parse(result.seen[0]?.body ?? '')).toMatchObject({ password: 'hunter2' });
  expect(result.said + result.out).not.toContain('hunter2');
});

it('who looks for API keys among the SSH keys is told where they are made', async () => {
  const result = await berth(['keys', 'create'], [json(200, {})]);
  expect([result.code, result.said]).toEqual([2, expect.stringContaining('API keys are made on the page /dashboard')]);
});

it('a private key stays on the machine', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-keys-'));
  try {
    const path = join(folder, 'id_ed25519');
    await writeFile(path, newEd25519Key('').private);
    const result = await berth(['keys', 'add', path], [json(201, {})]);
    expect([result.code, result.seen]).toEqual([2, []]);
    expect(result.said).toContain(`Write ${path}.pub.`);
  } finally {
    await rm(folder, { recursive: true });
  }
});

it('usage shows each group, the sum of each currency, and which amounts still grow', async () => {
  const amount = { gpu_seconds: 5400, cost: '3.735', currency: 'USD' };
  const spent = {
    from: '2026-11-01',
    to: '2026-11-23',
    group: 'day',
    items: [{ ...amount, group: '2026-11-23', product: null, open: true }],
    totals: [amount],
  };
  const used = { used: 1, limit: 10 };
  const counted = {
    instances: used,
    ssh_keys: used,
    templates: used,
    api_keys: used,
    registries: used,
    webhooks: used,
  };
  const lines = [{ unit: 'USD', limit: '500.00', spent: '415.20', left: '84.80' }];
  const budget = { renews_at: '2026-12-01T00:00:00.000Z', lines };
  const disks = { disk_gb: { used: 120, limit: 200 }, kept_disks: { count: 2, gb: 80 } };
  const limits = { ...counted, ...disks, policies: [], gpus_used: 1, gpus: [], budget, key_budget: null };
  const answer: Answer = (response, seen) => json(200, seen.line.includes('/usage') ? spent : limits)(response, seen);
  const result = await berth(['usage', '--by', 'day', '--since', '2026-11-01'], [answer]);
  expect(result.seen.map(({ line }) => line)).toContain('GET /api/v1/usage?group=day&from=2026-11-01');
  expect(result.out).toMatch(/^2026-11-23 +several +1\.50 +3\.735 USD +yes$/m);
  expect(result.out).toMatch(/^all +2026-11-01 to 2026-11-23 +1\.50 +3\.735 USD/m);
  expect(result.out).toMatch(/instances +1 of 10/);
  expect(result.out).toMatch(/^disks +120 of 200 GB, 80 GB of them kept from deleted instances$/m);
  expect(result.out).toMatch(/^budget, USD +415\.20 of 500\.00, 84\.80 left until 2026-12-01$/m);
  expect(result.out).not.toContain('budget of the key');
});
