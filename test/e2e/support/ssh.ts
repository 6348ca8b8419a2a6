import type { Client } from 'ssh2';
import { newEd25519Key } from '../../../src/ssh/login/ed25519-key.ts';
import { ssh2 } from '../../../src/ssh/ssh2/load.ts';
import { waitFor } from '../../support/wait-for.ts';
import { NAMESPACE } from './release.ts';
import type { World } from './world.ts';

export interface SshIdentity {
  privateKey: string;
  publicKey: string;
}

export function newIdentity(): SshIdentity {
  const pair = newEd25519Key('');
  return { privateKey: pair.private, publicKey: pair.public.trim() };
}

export interface SshPlace {
  host: string;
  port: number;
  user: string;
  /** The host's key as known_hosts has it: type and base64. */
  hostKey: string;
}

/** Logs in and checks the host key. The caller ends the connection, or `signal` does. */
export function login(
  { host, port, user, hostKey }: SshPlace,
  identity: SshIdentity,
  signal?: AbortSignal,
): Promise<Client> {
  const client = new ssh2.Client();
  const { promise, resolve, reject } = Promise.withResolvers<Client>();
  client.once('ready', () => resolve(client));
  // Until then an error or an end fails the login; the channels report what breaks later.
  client.on('error', reject);
  client.once('close', () => reject(new Error('the connection was closed before the login')));
  signal?.addEventListener('abort', () => {
    reject(signal.reason);
    client.destroy();
  });
  client.connect({
    host,
    port,
    username: user,
    privateKey: identity.privateKey,
    readyTimeout: 60_000,
    hostVerifier: (key: Buffer) => hostKey.includes(key.toString('base64')),
  });
  return promise;
}

/** Runs a command and returns its output. Throws when its exit status is not 0. */
export async function runOver(client: Client, command: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  client.exec(command, (error, channel) => {
    if (error) return reject(error);
    let output = '';
    channel.on('data', (data: Buffer) => (output += data.toString()));
    channel.stderr.on('data', (data: Buffer) => (output += data.toString()));
    channel.on('close', (code: number | null) =>
      code === 0 ? resolve(output) : reject(new Error(`exit status ${String(code)}: ${output}`)),
    );
  });
  return promise;
}

/** Sends a request to a port of the instance through the connection and returns the answer. */
export async function askPort(client: Client, port: number, request: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  client.forwardOut('127.0.0.1', 0, '127.0.0.1', port, (error, channel) => {
    if (error) return reject(error);
    let output = '';
    channel.on('data', (data: Buffer) => (output += data.toString()));
    channel.on('close', () => resolve(output));
    channel.end(request);
  });
  return promise;
}

/** The ways that sessions took, by the audit records of all gateways; waits for that of a forward. */
export async function waysOf(world: World): Promise<Set<string>> {
  const logs = ['logs', '-n', NAMESPACE, '-l', 'app.kubernetes.io/component=ssh', '--tail=-1'];
  const text = await waitFor('the record of a forward', async () => {
    const { stdout } = await world.kubectl(logs);
    return stdout.includes('"kind":"forward"') ? stdout : undefined;
  });
  return new Set([...text.matchAll(/"way":"(\w+)"/g)].map(([, way = '']) => way));
}
