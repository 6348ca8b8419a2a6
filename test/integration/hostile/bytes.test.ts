import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ClientChannel } from 'ssh2';
import { afterAll, beforeAll, inject, it } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { SSH_KEYS } from '../../../src/resources/ssh-key.ts';
import { newEd25519Key } from '../../../src/ssh/login/ed25519-key.ts';
import { ssh2 } from '../../../src/ssh/ssh2/load.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { describeWith } from '../../support/needs.ts';
import { runningInstance } from '../../support/running-instance.ts';
import { importJupyterImage, JUPYTER } from '../../support/ssh-images.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';
import { compare } from './arena.ts';

// A tenant that takes bytes from its instance on 120 streams at once, beside one that types and opens a page. Both pass
// through one process.

const SERVER = readFileSync(new URL('../../support/echo-server.py', import.meta.url), 'utf8');

/** A tenant whose instance `lab` serves at port 7000. */
interface Side {
  space: TestNamespace;
  token: string;
  user: string;
  privateKey: string;
}

let home: TestNamespace;
let berth: BerthProcess;
let hostile: Side;
let honest: Side;

async function page({ token }: Side): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`${berth.url}/api/v1/instances/lab/proxy/7000/x`, { headers });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`The port answered ${answer.status} ${text}`);
}

async function enter(): Promise<Side> {
  const space = await testNamespace();
  const { client, name: namespace } = space;
  const { token } = await createKey(client, { namespace });
  const sshKey = newEd25519Key('');
  const spec = { publicKey: sshKey.public, displayName: '' };
  await client.create(SSH_KEYS, { metadata: { namespace, name: 'laptop' }, spec });
  const onStart = `python3 -c '${SERVER.replaceAll("'", String.raw`'\''`)}'`;
  await client.create(GPU_INSTANCES, {
    metadata: { namespace, name: 'lab' },
    spec: { gpu: { product: 'NVIDIA-L4', count: 1 }, image: JUPYTER, ports: [{ containerPort: 7000 }], onStart },
  } as never);
  const { status } = await runningInstance(space, 'lab', 200_000);
  const side = { space, token, user: status?.ssh?.user ?? '', privateKey: sshKey.private };
  await waitFor('the port', () =>
    page(side).then(
      () => true,
      () => false,
    ),
  );
  return side;
}

/** Sends a key press to a program of the instance, and waits for it to come back. */
async function typing({ user, privateKey }: Side): Promise<{ press: () => Promise<void>; end: () => void }> {
  const client = new ssh2.Client();
  client.connect({ host: '127.0.0.1', port: berth.sshPort, username: user, privateKey });
  await once(client, 'ready');
  const opened = Promise.withResolvers<ClientChannel>();
  client.exec('cat', (error, channel) => (error ? opened.reject(error) : opened.resolve(channel)));
  const channel = await opened.promise;
  const press = async (): Promise<void> => {
    const back = once(channel, 'data');
    channel.write('x');
    await back;
  };
  await press();
  return { press, end: () => client.destroy() };
}

/** In a process of its own: what it does with the bytes is no time of the honest tenant. */
async function flood(signal: AbortSignal): Promise<void> {
  const { token, user, privateKey } = hostile;
  const target = { http: Number(new URL(berth.url).port), ssh: berth.sshPort, token, user, privateKey };
  const child = spawn(process.execPath, [fileURLToPath(new URL('./flood.ts', import.meta.url))], {
    env: { ...process.env, TARGET: JSON.stringify(target) },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  signal.addEventListener('abort', () => child.kill('SIGKILL'));
  await once(child, 'exit');
}

describeWith('real node', 'mmdebstrap')('bytes that are taken without a pause', () => {
  beforeAll(async () => {
    const { kubeconfig, initPid = 0, programs = '' } = inject('cluster');
    home = await testNamespace();
    await importJupyterImage({ initPid, programs });
    berth = await startBerth(kubeconfig, 'all', home.name);
    [hostile, honest] = await Promise.all([enter(), enter()]);
  }, 400_000);

  afterAll(async () => {
    await berth[Symbol.asyncDispose]();
    for (const space of [hostile.space, honest.space, home]) await space[Symbol.asyncDispose]();
  });

  it('a page of a port', { timeout: 120_000 }, async () => {
    await compare('bytes without a pause, a page of a port', () => page(honest), flood);
  });

  it('a key press in an SSH session', { timeout: 120_000 }, async () => {
    const { press, end } = await typing(honest);
    await compare('bytes without a pause, a key press by SSH', press, flood);
    end();
  });
});
