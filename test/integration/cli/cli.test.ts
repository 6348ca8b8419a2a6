import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import { API_KEYS } from '../../../src/resources/api-key.ts';
import { newEd25519Key } from '../../../src/ssh/login/ed25519-key.ts';
import { run } from '../../../tools/lib/shell.ts';
import { type BerthCli, installCli } from '../../support/berth-cli.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { describeWith } from '../../support/needs.ts';
import { programSession } from '../../support/ssh-terminal.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

let berth: BerthProcess;
let tenant: TestNamespace;
let token: string;
let cli: BerthCli;

const access = (): string => join(cli.home, '.config/berth/access.json');

beforeAll(async () => {
  tenant = await testNamespace();
  await kindsCounted(tenant.client);
  berth = await startBerth(inject('cluster').kubeconfig);
  ({ token } = await createKey(tenant.client, { namespace: tenant.name, displayName: 'renter' }));
  const headers = { authorization: `Bearer ${token}` };
  await waitFor('the key', async () => (await fetch(`${berth.url}/api/v1/offers`, { headers })).ok);
  cli = await installCli(berth.url);
  await mkdir(join(cli.home, '.ssh'), { recursive: true, mode: 0o700 });
  const pair = newEd25519Key('me@laptop');
  await writeFile(join(cli.home, '.ssh/id_ed25519'), pair.private, { mode: 0o600 });
  await writeFile(join(cli.home, '.ssh/id_ed25519.pub'), pair.public);
});
afterAll(async () => {
  await cli[Symbol.asyncDispose]();
  await berth[Symbol.asyncDispose]();
  await tenant[Symbol.asyncDispose]();
});

it('the server hands the package out without a key, and says when nothing has changed', async () => {
  const url = `${berth.url}/cli/berth.tgz`;
  const answer = await fetch(url);
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/gzip']);
  const again = await fetch(url, { headers: { 'if-none-match': answer.headers.get('etag') ?? '' } });
  expect(again.status).toBe(304);
  expect((await fetch(url, { method: 'POST' })).status).toBe(405);
});

it('npm installs it without other packages, and it has the version of the server', async () => {
  expect(await readdir(join(cli.prefix, 'lib/node_modules'))).toEqual(['berth']);
  expect(await readdir(join(cli.prefix, 'lib/node_modules/berth'))).not.toContain('node_modules');
  const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string };
  expect(await cli.run(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
});

it('signs in with a key from the input, which nothing shows again and others cannot read', async () => {
  const before = await cli.run(['ls']);
  expect([before.code, before.stderr]).toEqual([3, expect.stringContaining('berth login URL')]);
  const wrong = await cli.run(['login', berth.url], `${token}x\n`);
  expect([wrong.code, wrong.stderr]).toEqual([3, expect.stringContaining('Invalid API key.')]);
  await expect(stat(access())).rejects.toThrow('ENOENT');
  const right = await cli.run(['login', berth.url], `${token}\n`);
  expect([right.code, right.stdout]).toEqual([0, '']);
  expect(right.stderr).not.toContain(token);
  expect((await stat(access())).mode & 0o777).toBe(0o600);
  expect((await cli.run(['ls'])).code).toBe(0);
  await chmod(access(), 0o644);
  const open = await cli.run(['ls']);
  expect([open.code, open.stderr]).toEqual([3, expect.stringContaining('chmod 600')]);
  await chmod(access(), 0o600);
});

it('reads a key at a terminal without showing it', async () => {
  const terminal = programSession([cli.berth, 'login', berth.url], cli.env);
  await terminal.type('', /not shown\): /);
  await terminal.type(`${token}\r`, /Signed in/);
  expect(await terminal.end()).toBe(0);
  expect(terminal.screen).not.toContain(token);
});

it('says in the words of the server why something is refused, and exits as documented', async () => {
  const missing = await cli.run(['show', 'nobody']);
  expect([missing.code, missing.stderr]).toEqual([4, expect.stringContaining('berth ls lists your instances.')]);
  const none = await cli.run(['rent', '--gpu', 'nothing-like-this', '--yes']);
  expect([none.code, none.stderr]).toEqual([
    5,
    expect.stringContaining('No GPU that fits is called nothing-like-this.'),
  ]);
  const unasked = await cli.run(['rent', '--gpu', 'h100']);
  expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringContaining('Add --yes.')]);
  const bad = await cli.run(['rent', '--gpu', 'h100', '--max-duration', 'soon', '--yes']);
  expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining('--max-duration')]);
});

it('rents on a simulated node as programs ask for it, and shows, changes and deletes it', async () => {
  const offers = await cli.run(['offers', '--gpu', 'h100', '--json']);
  const [offer] = (JSON.parse(offers.stdout) as { data: { id: number; gpu_name: string }[] }).data;
  expect(offer?.gpu_name).toContain('H100');
  const rented = await cli.run([
    'rent',
    '--offer',
    String(offer?.id),
    '--name',
    'sim',
    '--max-duration',
    '1h',
    '--yes',
  ]);
  expect([rented.code, rented.stderr]).toEqual([0, expect.stringContaining('SSH ready')]);
  const id = rented.stdout.trim();
  expect((await cli.run(['ls'])).stdout).toMatch(new RegExp(`^${id}\\s+sim\\s+running`, 'm'));
  const extended = await cli.run(['extend', 'sim', '2h', '--json']);
  expect(JSON.parse(extended.stdout)).toMatchObject({ id, max_duration: '3h' });
  const set = await cli.run(['set', id, '--label', 'mine', '--max-duration', 'none', '--json']);
  expect(JSON.parse(set.stdout)).toMatchObject({ label: 'mine', max_duration: null });
  expect((await cli.run(['events', id])).stdout).toMatch(/Claimed +The controller granted a place/);
  expect((await cli.run(['usage'])).stdout).toMatch(/instances +1 of/);
  const completed = await cli.run(['__complete', 'show', '']);
  expect(completed.stdout).toBe(`${id}\nsim\n`);
  expect((await cli.run(['stop', id])).code).toBe(0);
  await waitFor('the stop', async () => (await cli.run(['ls'])).stdout.includes(' stopped '));
  expect(await cli.run(['start', id])).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`${id} runs.`) as string,
  });
  const login = await cli.run(['ssh', id]);
  expect([login.code, login.stderr]).toEqual([1, expect.stringContaining('simulated node')]);
  expect((await cli.run(['rm', 'sim'])).code).toBe(2);
  expect((await cli.run(['rm', 'sim', '--yes'])).code).toBe(0);
});

it('works as kubectl berth from a kubeconfig alone, and leaves no key behind', async () => {
  const { kubeconfig, programs } = inject('cluster');
  const PATH = [programs, dirname(cli.kubectlBerth), process.env['PATH']].filter(Boolean).join(delimiter);
  const env = { ...cli.env, KUBECONFIG: kubeconfig, BERTH_URL: berth.url, PATH };
  const before = (await tenant.client.list(API_KEYS, { namespace: tenant.name })).items.length;
  const listed = await run('kubectl', ['berth', '-n', tenant.name, 'offers', '--gpu', 'h100'], { env });
  expect([listed.code, listed.stdout]).toEqual([0, expect.stringContaining('H100')]);
  const after = (await tenant.client.list(API_KEYS, { namespace: tenant.name })).items;
  expect(after.map(({ metadata }) => metadata.name).filter((name) => name.startsWith('kubectl-berth-'))).toEqual([]);
  expect(after).toHaveLength(before);
});

describeWith(
  'real node',
  'ssh',
  'rsync',
)('on the real node', () => {
  it('a person rents at a terminal, logs in, copies, follows the log, stops and gives back', async () => {
    await writeFile(join(cli.home, 'hello.sh'), 'echo hello from the start\n');
    const terminal = programSession(
      [cli.berth, 'rent', '--name', 'shell', '--on-start', join(cli.home, 'hello.sh')],
      cli.env,
    );
    await terminal.type('', /q to end \[1\]: /);
    await terminal.type('l4\r', /1\) .*L4[^]*q to end \[1\]: /);
    await terminal.type('\r', /Rent 1 x NVIDIA-L4 for .* per hour\? \[y\/N\] /);
    await terminal.type('y\r', /Register .*id_ed25519\.pub\? \[Y\/n\] /);
    const [, id = ''] = await terminal.type('\r', /Log in with: berth ssh (\S+)/);
    expect(await terminal.end()).toBe(0);
    expect(terminal.screen).toMatch(/GPU assigned[^]*SSH ready/);

    const identity = ['-i', join(cli.home, '.ssh/id_ed25519')];
    const said = await cli.run(['ssh', ...identity, 'shell', 'echo $((40 + 2)); exit 7']);
    expect([said.code, said.stdout]).toEqual([7, '42\n']);
    await writeFile(join(cli.home, 'file'), 'content\n');
    expect((await cli.run(['cp', ...identity, join(cli.home, 'file'), `${id}:/workspace/`])).code).toBe(0);
    expect((await cli.run(['ssh', ...identity, id, 'cat', '/workspace/file'])).stdout).toBe('content\n');
    expect((await cli.run(['logs', id])).stdout).toContain('hello from the start\n');

    const tree = join(cli.home, 'tree');
    await mkdir(join(tree, 'sub'), { recursive: true });
    await writeFile(join(tree, 'sub/a name'), 'first\n');
    const copied = async (how: string): Promise<void> => {
      expect(await cli.run(['cp', how, ...identity, tree, `${id}:/workspace/`])).toMatchObject({ code: 0, stderr: '' });
      const back = join(cli.home, `back${how}`);
      await mkdir(back);
      expect((await cli.run(['cp', how, ...identity, `shell:/workspace/tree`, back])).code).toBe(0);
      expect(await run('diff', ['-r', tree, join(back, 'tree')])).toMatchObject({ code: 0, stdout: '' });
    };
    await copied('-r');
    await writeFile(join(tree, 'sub/a name'), 'second\n');
    await copied('--rsync');
    const missing = await cli.run(['cp', ...identity, join(cli.home, 'nothing'), `${id}:/workspace/`]);
    expect([missing.code, missing.stderr]).toEqual([expect.any(Number), expect.stringContaining('No such file')]);
    expect(missing.code).not.toBe(0);

    await cli.run(['ssh', '--config', ...identity]);
    const config = join(cli.home, '.ssh/config');
    const direct = await run('ssh', ['-F', config, '-o', 'BatchMode=yes', 'shell.berth', 'echo direct'], {
      env: cli.env,
    });
    expect([direct.code, direct.stdout]).toEqual([0, 'direct\n']);

    const follower = programSession([cli.berth, 'logs', '-f', id], cli.env);
    await follower.type('', /hello from the start/);
    expect((await cli.run(['stop', id, '--yes'])).code).toBe(0);
    expect(await follower.end()).toBe(0);
    expect(follower.screen).toContain('The log ends');
    expect((await cli.run(['rm', 'shell', '--yes'])).code).toBe(0);
  });
});
