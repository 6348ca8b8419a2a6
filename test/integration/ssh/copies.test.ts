import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { run } from '../../../tools/lib/shell.ts';
import type { Way } from '../../../src/ssh/audit.ts';
import { copyBothWays, sha256 } from '../../support/bulk-copy.ts';
import { BARE, DEBIAN, NONROOT } from '../../support/ssh-images.ts';
import { sshClient, type SshClient } from '../../support/ssh-client.ts';
import { byEachWay, sshWorld, WAYS, type SshWorld } from '../../support/ssh-world.ts';
import { describeWith } from '../../support/needs.ts';

const onNode = describeWith('real node', 'ssh', 'mmdebstrap', 'rsync');

// Enough to fill every buffer on the way many times; the fault suite copies a whole GiB.
const BULK_MIB = 256;

let world: SshWorld;
let configs: Record<Way, string>;
let client: SshClient;
let config: string;
let tree: string;
let file: string;

beforeAll(async () => {
  world = await sshWorld();
  const key = await world.addKey('laptop');
  const { direct, exec } = world.gateways;
  configs = { direct: world.configOf(direct, key), exec: world.configOf(exec, key) };
  await Promise.all([
    world.addInstance('debian', { image: DEBIAN }),
    world.addInstance('bare', { image: BARE }),
    world.addInstance('nonroot', { image: NONROOT, securityContext: { runAsNonRoot: true } }),
  ]);
  tree = join(world.folder, 'tree');
  mkdirSync(join(tree, 'sub', 'empty'), { recursive: true });
  writeFileSync(join(tree, 'a'), 'a');
  writeFileSync(join(tree, 'sub', 'name with spaces'), randomBytes(70_000), { mode: 0o640 });
  writeFileSync(join(tree, 'sub', 'zero'), '');
  file = join(world.folder, 'file');
  writeFileSync(file, randomBytes(5_000_000));
});
afterAll(() => world.end());

function use(way: Way): void {
  config = configs[way];
  client = sshClient(config);
}

async function sameTree(other: string): Promise<void> {
  expect(await run('diff', ['-r', tree, other])).toMatchObject({ code: 0, stdout: '' });
}

onNode.each(byEachWay(['debian', 'bare', 'nonroot']))('copies to and from %s, %s', (instance, way) => {
  beforeEach(() => use(way));
  const remote = (path: string): string => `${instance}@127.0.0.1:/tmp/${way}-${path}`;
  const back = (name: string): string => join(world.folder, `${instance}-${way}-${name}`);

  it.each([
    ['the SFTP protocol', []],
    ['the scp protocol', ['-O']],
  ])('scp over %s', async (_name, flags) => {
    const name = `one${flags.join('')}`;
    expect(await client.run('scp', [...flags, '-q', file, remote(name)])).toMatchObject({ code: 0, stderr: '' });
    expect(await client.run('scp', [...flags, '-q', remote(name), back(name)])).toMatchObject({ code: 0 });
    expect(await sha256(back(name))).toBe(await sha256(file));
    expect(await client.run('scp', [...flags, '-qrp', tree, remote(`tree${name}`)])).toMatchObject({ code: 0 });
    expect(await client.run('scp', [...flags, '-qrp', remote(`tree${name}`), back(`tree${name}`)])).toMatchObject({
      code: 0,
    });
    await sameTree(back(`tree${name}`));
  });

  it('scp reports a file that is not there', async () => {
    const [sftp, legacy] = await Promise.all([
      client.run('scp', ['-q', remote('missing'), back('missing')]),
      client.run('scp', ['-O', '-q', remote('missing'), back('missing')]),
    ]);
    expect(sftp.code).toBe(1);
    expect(legacy.code).toBe(1);
    expect(sftp.stderr + legacy.stderr).toMatch(/no such file/i);
  });

  it('sftp', async () => {
    const commands = [
      `put ${file} /tmp/s1`,
      'rename /tmp/s1 /tmp/s2',
      'chmod 600 /tmp/s2',
      'ls -l /tmp/s2',
      `get /tmp/s2 ${back('s2')}`,
      'rm /tmp/s2',
    ];
    const result = await client.run('sftp', ['-q', '-b', '-', `${instance}@127.0.0.1`], `${commands.join('\n')}\n`);
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(String(result.stdout)).toContain('-rw-------');
    expect(await sha256(back('s2'))).toBe(await sha256(file));
  });

  it('rsync, with the second run copying nothing', async () => {
    const shell = ['-e', `ssh -F ${config}`];
    expect(await run('rsync', ['-a', ...shell, `${tree}/`, remote('rsync/')])).toMatchObject({ code: 0, stderr: '' });
    const again = await run('rsync', ['-ai', ...shell, `${tree}/`, remote('rsync/')]);
    expect(again).toMatchObject({ code: 0, stdout: '' });
    expect(await run('rsync', ['-a', ...shell, remote('rsync/'), `${back('rsync')}/`])).toMatchObject({ code: 0 });
    await sameTree(back('rsync'));
  });
});

onNode.each(WAYS)('bulk, %s', (way) => {
  beforeEach(() => use(way));

  it(`${BULK_MIB} MiB both ways, to the byte`, { timeout: 300_000 }, async () => {
    await copyBothWays({ config, folder: world.folder, held: way === 'exec' }, 'debian', BULK_MIB);
  });
});
