import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { numericId } from '../../../src/resources/ids.ts';
import { SSH_KEYS } from '../../../src/resources/ssh-key.ts';
import { loadHostKeys } from '../../../src/ssh/login/host-key.ts';
import { softwareKey } from '../../support/security-key.ts';
import { sshAgent } from '../../support/ssh-agent.ts';
import { BARE } from '../../support/ssh-images.ts';
import { finished, sshClient, type SshClient } from '../../support/ssh-client.ts';
import { sshWorld, type SshWorld } from '../../support/ssh-world.ts';
import { waitFor } from '../../support/wait-for.ts';
import { newEd25519Key } from '../../../src/ssh/login/ed25519-key.ts';
import { ssh2 } from '../../../src/ssh/ssh2/load.ts';
import { describeWith } from '../../support/needs.ts';
import { run } from '../../../tools/lib/shell.ts';

const onNode = describeWith('real node', 'ssh', 'mmdebstrap');

let world: SshWorld;
let keys: Record<'laptop' | 'desk', string>;

function as(key: string): SshClient {
  return sshClient(world.configOf(world.server, key));
}

async function idOf(name: string): Promise<number> {
  const key = await world.client.get(SSH_KEYS, { namespace: world.namespace, name });
  return numericId(key.metadata.uid ?? '');
}

beforeAll(async () => {
  world = await sshWorld();
  keys = { laptop: await world.addKey('laptop'), desk: await world.addKey('desk') };
  await world.addInstance('open', { image: BARE });
  await world.addInstance('narrow', { image: BARE, sshKeyIds: [await idOf('desk')] });
});
afterAll(() => world.end());

onNode('logins', () => {
  it('accepts every key of the namespace when the instance names none, and id.namespace', async () => {
    expect((await as(keys.laptop).ssh('open', 'true')).code).toBe(0);
    expect((await as(keys.desk).ssh(`open.${world.namespace}`, 'true')).code).toBe(0);
  });

  it.each(['rsa-sha2-512', 'rsa-sha2-256'])('accepts a client that signs with %s alone', async (algorithm) => {
    const path = join(world.folder, algorithm);
    const pair = ssh2.utils.generateKeyPairSync('rsa', { bits: 2048 });
    writeFileSync(path, pair.private, { mode: 0o600 });
    await world.addPublicKey(algorithm, pair.public);
    const flags = ['-o', `PubkeyAcceptedAlgorithms=${algorithm}`];
    expect(await as(path).ssh('open', 'true', { flags })).toMatchObject({ code: 0, stderr: '' });
  });

  it.each(['ed25519', 'ecdsa'] as const)('accepts a security key of type %s', async (kind) => {
    const key = softwareKey(kind);
    const path = join(world.folder, `sk-${kind}.pub`);
    writeFileSync(path, `${key.line}\n`);
    await world.addPublicKey(`sk-${kind}`, key.line);
    const socket = join(world.folder, `agent-${kind}`);
    const end = await sshAgent(socket, key);
    const flags = ['-o', `IdentityAgent=${socket}`];
    expect(await as(path).ssh('open', 'true', { flags })).toMatchObject({ code: 0, stderr: '' });
    await end();
  });

  it('accepts certificates of an authority that the tenant registered, until it is deleted', async () => {
    const authority = join(world.folder, 'authority');
    const user = join(world.folder, 'certified');
    for (const path of [authority, user]) await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path]);
    await world.addPublicKey('authority', `cert-authority ${readFileSync(`${authority}.pub`, 'utf8')}`.trim());
    await run('ssh-keygen', ['-q', '-s', authority, '-I', 'alice', '-n', `open.${world.namespace}`, `${user}.pub`]);
    expect(await as(user).ssh('open', 'echo in')).toMatchObject({ code: 0, stdout: Buffer.from('in\n') });
    const session = as(user).start('open', 'echo up; sleep 60');
    const begun = once(session.stdout, 'data');
    const ended = finished(session);
    await begun;
    await world.removeKey('authority');
    expect(await ended).toMatchObject({ code: 255, stderr: expect.stringContaining('no longer opens instance open') });
    expect((await as(user).ssh('open', 'true')).stderr).toContain('Permission denied (publickey)');
  });

  it.each([
    ['connections', /^berth: namespace \S+ has 0 SSH connections, and its limit is 0\. .*change ssh\.connections/m],
    [
      'channels',
      /open failed: resource shortage: berth: namespace \S+ has 0 open SSH channels, .*change ssh\.channels/,
    ],
  ])('says on the terminal which ceiling of the tenant was reached: %s', async (place, words) => {
    const ceilings = { ...DEFAULT_CEILINGS, ssh: { ...DEFAULT_CEILINGS.ssh, [place]: 0 } };
    const full = await world.startGateway({ ceilingsOf: () => ceilings });
    const flags = ['-o', 'LogLevel=INFO'];
    const result = await sshClient(world.configOf(full, keys.laptop)).ssh('open', 'true', { flags });
    expect(result.code).toBe(255);
    expect(result.stderr).toMatch(words);
  });

  it('tells the owner of a key that it is not on this instance', async () => {
    const result = await finished(as(keys.laptop).start('narrow', 'true', ['-o', 'LogLevel=INFO']));
    expect(result.code).toBe(255);
    expect(result.stderr).toMatch(/berth: the key SHA256:\S+ is not registered on instance narrow\./);
    expect((await as(keys.desk).ssh('narrow', 'true')).code).toBe(0);
  });

  it('goes on to the right key after a wrong one', async () => {
    const flags = ['-i', keys.desk];
    expect((await as(keys.laptop).ssh('narrow', 'true', { flags })).code).toBe(0);
  });

  it('gives strangers one answer, whether the instance exists or not', async () => {
    const stranger = await world.addKey('stranger');
    const client = as(stranger);
    await world.removeKey('stranger');
    await waitFor('the removal', async () => (await client.ssh('open', 'true')).code === 255);
    const answers = await Promise.all(
      ['open', 'no-such', 'open.elsewhere', 'a..b'].map((name) => client.ssh(name, 'true')),
    );
    const texts = answers.map(({ stderr }) => stderr.replace(/^.*?: /, '').trim());
    expect(new Set(texts)).toEqual(new Set(['Permission denied (publickey).']));
  });

  it('says why there is no session in an instance that does not run', async () => {
    const spec = { gpu: { count: 1 } };
    const metadata = { name: 'idle', namespace: world.namespace };
    const object = { apiVersion: 'berth.dev/v1alpha1', kind: 'GPUInstance', metadata, spec };
    await world.client.create(GPU_INSTANCES, object as never);
    const condition = {
      type: 'Ready',
      status: 'False',
      reason: 'Stopped',
      message: 'Start it to log in.',
      lastTransitionTime: new Date().toISOString(),
    };
    const status = { status: { conditions: [condition] } };
    const ref = { namespace: world.namespace, name: 'idle' };
    await world.client.patch(GPU_INSTANCES, ref, status, { type: 'merge', subresource: 'status' });
    await waitFor('the state', () =>
      world.directory.find({ instance: 'idle', namespace: world.namespace })?.condition.startsWith('stopped'),
    );
    const result = await as(keys.laptop).ssh(`idle.${world.namespace}`, 'true');
    expect(result).toMatchObject({ code: 255, stderr: 'berth: instance idle is stopped: Start it to log in.\n' });
  });

  it('refuses a gateway with another host key', async () => {
    const impostor = await world.startGateway({
      hostKey: newEd25519Key('').private,
    });
    const result = await sshClient(world.configOf(impostor, keys.laptop)).ssh('open', 'true');
    expect(result.code).toBe(255);
    expect(result.stderr).toContain('REMOTE HOST IDENTIFICATION HAS CHANGED');
  });

  it('shares one host key among replicas that start at once', async () => {
    const loaded = await Promise.all(Array.from({ length: 4 }, () => loadHostKeys(world.client, 'default')));
    expect(new Set(loaded.map(({ current }) => current)).size).toBe(1);
  });

  it('refuses passwords and -R, and says so for -R', async () => {
    const password = await as(keys.laptop).ssh('open', 'true', { flags: ['-o', 'PubkeyAuthentication=no'] });
    expect(password.stderr).toContain('Permission denied (publickey)');
    const reverse = await as(keys.laptop).ssh('open', 'true', { flags: ['-R', '0:127.0.0.1:1'] });
    expect(reverse.stderr).toContain('remote forwarding (-R) is not offered');
  });
});

onNode('a key that is deleted', () => {
  it('opens at once when added, and ends live sessions within a second when deleted', async () => {
    const path = await world.addKey('brief');
    const client = as(path);
    const child = client.start('open', 'echo up; sleep 300');
    let output = '';
    child.stdout.on('data', (text) => (output += String(text)));
    const result = finished(child);
    await waitFor('the session', () => output.includes('up'));
    const began = performance.now();
    await world.removeKey('brief');
    const { code, stderr } = await result;
    expect(performance.now() - began).toBeLessThan(1000);
    expect(code).toBe(255);
    expect(stderr).toContain('no longer opens instance open');
    expect((await client.ssh('open', 'true')).code).toBe(255);
    await waitFor('the end of the command', async () => {
      const found = await as(keys.desk).ssh('open', 'grep -sl sleep.30[0] /proc/[0-9]*/cmdline');
      return found.stdout.length === 0;
    });
  });
});
