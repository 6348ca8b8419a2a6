import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { BerthCli } from '../../support/berth-cli.ts';
import type { FollowedLog, PythonClient } from '../../support/generated/python-client.ts';
import { type Events, openEvents } from '../../support/http/events.ts';
import { finished } from '../../support/ssh-client.ts';
import type { Tenant } from './http.ts';
import { login, runOver, type SshIdentity } from './ssh.ts';

const record = z.record(z.string(), z.unknown());
type Json = z.infer<typeof record>;

/** What is rented, in the words of the HTTP interface. */
export interface Wanted {
  name: string;
  template_image: string;
  registry: string;
  env: Record<string, string>;
  ports: { container_port: number }[];
  on_start: string;
  disk_gb: number;
  max_duration: string;
}

/** One way to rent with a key alone. Every step throws when the server refuses it. */
export interface Renter {
  addKey(name: string): Promise<Json>;
  removeKey(id: unknown): Promise<unknown>;
  addRegistry(credentials: Record<'name' | 'server' | 'username' | 'password', string>): Promise<unknown>;
  removeRegistry(name: string): Promise<unknown>;
  rent(wanted: Wanted): Promise<Json>;
  show(id: string): Promise<Json>;
  /** Runs a command over SSH, with the host key that the record names. */
  run(id: string, command: string): Promise<string>;
  /** Lets an instance that was rented for one hour run for two. */
  extend(id: string): Promise<Json>;
  giveBack(id: string): Promise<unknown>;
  /** The history, which outlives the instance. */
  events(id: string): Promise<Json>;
  /** Follows the log from its first line, and goes on by itself when the server breaks off. */
  follow(id: string): FollowedLog;
}

const line = z.object({ text: z.string() });

/** Follows a log as an event stream, and resumes it at the last id. */
function followLog(url: string, token: string): FollowedLog {
  const streams: Events[] = [];
  const stopped = new AbortController();
  const seen = () => streams.flatMap((one) => one.seen);
  async function goOn(): Promise<void> {
    while (!stopped.signal.aborted) {
      const lastId = seen().findLast(({ type }) => type === 'line')?.id;
      const stream = await openEvents(url, token, lastId).catch(() => undefined);
      if (stream === undefined) {
        await delay(100);
        continue;
      }
      streams.push(stream);
      await stream.ended.catch(() => undefined);
    }
  }
  const over = goOn();
  return {
    lines: () =>
      seen()
        .filter(({ type }) => type === 'line')
        .map(({ json }) => line.parse(json).text),
    async stop() {
      stopped.abort();
      await streams.at(-1)?.close();
      await over;
    },
  };
}

const sshSchema = z.object({ host: z.string(), port: z.number(), user: z.string(), known_hosts: z.string() });

async function runBySsh(shown: Json, command: string, identity: SshIdentity): Promise<string> {
  const { known_hosts: hostKey, ...place } = sshSchema.parse(shown['ssh']);
  const session = await login({ ...place, hostKey }, identity);
  const output = await runOver(session, command);
  session.end();
  return output;
}

/** By requests as the documents show them. */
export function httpRenter(user: Tenant, base: string, identity: SshIdentity): Renter {
  async function call(method: string, path: string, body?: unknown): Promise<Json> {
    const answer = await user.call(method, `/api/v1${path}`, body);
    if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }
  return {
    addKey: (name) => call('POST', '/ssh-keys', { name, public_key: identity.publicKey }),
    removeKey: (id) => call('DELETE', `/ssh-keys/${String(id)}`),
    addRegistry: (credentials) => call('POST', '/registries', credentials),
    removeRegistry: (name) => call('DELETE', `/registries/${name}`),
    rent: (wanted) => call('POST', '/instances', wanted),
    show: (id) => call('GET', `/instances/${id}`),
    run: async (id, command) => runBySsh(await call('GET', `/instances/${id}`), command, identity),
    extend: (id) => call('PATCH', `/instances/${id}`, { max_duration: '2h' }),
    giveBack: (id) => call('DELETE', `/instances/${id}`),
    events: (id) => call('GET', `/instances/${id}/events`),
    follow: (id) => followLog(`${base}/api/v1/instances/${id}/logs?follow=true`, user.token),
  };
}

/** By the Python client that is generated from /openapi.json. */
export function pythonRenter(client: PythonClient, identity: SshIdentity): Renter {
  return {
    addKey: (name) => client.step('add_key', { name, public_key: identity.publicKey }),
    removeKey: (id) => client.step('remove_key', { id }),
    addRegistry: (credentials) => client.step('add_registry', credentials),
    removeRegistry: (name) => client.step('remove_registry', { name }),
    rent: (wanted) => client.step('rent', wanted),
    show: (id) => client.step('show', { id }),
    run: async (id, command) => runBySsh(await client.step('show', { id }), command, identity),
    extend: (id) => client.step('change', { id, change: { max_duration: '2h' } }),
    giveBack: (id) => client.step('give_back', { id }),
    events: (id) => client.step('events', { id }),
    follow: (id) => client.follow(id),
  };
}

/** By the command line that the server hands out, with the key in its settings, and by the ssh of the system. */
export async function cliRenter(cli: BerthCli, user: Tenant, base: string, identity: SshIdentity): Promise<Renter> {
  const { code, stderr } = await cli.run(['login', base, '--plain-http'], `${user.token}\n`);
  if (code !== 0) throw new Error(`berth login ended with ${code}: ${stderr}`);
  return await programRenter({ words: [cli.berth], env: cli.env, home: cli.home }, identity);
}

/** By the same as a plugin of kubectl: no key, no address, only a kubeconfig. */
export async function kubectlRenter(
  cli: BerthCli,
  desk: { kubectl: string; kubeconfig: string; namespace: string },
  identity: SshIdentity,
): Promise<Renter> {
  const PATH = [dirname(desk.kubectl), dirname(cli.kubectlBerth), cli.env['PATH']].join(delimiter);
  const env = { ...cli.env, PATH, KUBECONFIG: desk.kubeconfig };
  return await programRenter({ words: ['kubectl', 'berth', '-n', desk.namespace], env, home: cli.home }, identity);
}

interface Command {
  /** The first words of every line. */
  words: readonly [string, ...string[]];
  env: NodeJS.ProcessEnv;
  home: string;
}

async function programRenter({ words, env, home }: Command, identity: SshIdentity): Promise<Renter> {
  const [program, ...first] = words;
  const [key, script] = [join(home, 'id_ed25519'), join(home, 'start.sh')];
  await writeFile(key, identity.privateKey, { mode: 0o600 });
  await writeFile(`${key}.pub`, identity.publicKey);

  async function berth(args: readonly string[], input?: string): Promise<string> {
    const { code, stdout, stderr } = await finished(spawn(program, [...first, ...args], { env }), input);
    if (code !== 0) throw new Error(`berth ${args.join(' ')} ended with ${code}: ${stdout.toString()}${stderr}`);
    return stdout.toString();
  }
  const json = async (args: readonly string[]): Promise<Json> =>
    record.parse(JSON.parse(await berth([...args, '--json'])));

  return {
    addKey: (name) => json(['keys', 'add', `${key}.pub`, '--name', name]),
    removeKey: (id) => berth(['keys', 'rm', String(id)]),
    addRegistry: ({ name, server, username, password }) =>
      berth(['registries', 'add', name, server, username], `${password}\n`),
    removeRegistry: (name) => berth(['registries', 'rm', name]),
    async rent({ name, template_image: image, registry, env: given, ports, on_start: start, disk_gb: disk, ...life }) {
      await writeFile(script, start);
      const variables = Object.entries(given).flatMap(([variable, text]) => ['--env', `${variable}=${text}`]);
      const served = ports.flatMap(({ container_port: port }) => ['--port', String(port)]);
      const program = ['--image', image, '--registry', registry, '--on-start', script, '--disk', String(disk)];
      const rest = ['--name', name, '--max-duration', life.max_duration, '--yes'];
      return json(['rent', ...program, ...variables, ...served, ...rest]);
    },
    show: (id) => json(['show', id]),
    run: (id, command) => berth(['ssh', '-i', key, id, command]),
    extend: (id) => json(['extend', id, '1h']),
    giveBack: (id) => berth(['rm', id, '--yes']),
    events: (id) => json(['events', id]),
    follow(id) {
      const child = spawn(program, [...first, 'logs', '-f', id], { env, stdio: ['ignore', 'pipe', 'inherit'] });
      const ended = once(child, 'exit');
      let output = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
      return {
        lines: () => output.split('\n').slice(0, -1),
        async stop() {
          child.kill('SIGTERM');
          await ended;
        },
      };
    },
  };
}
