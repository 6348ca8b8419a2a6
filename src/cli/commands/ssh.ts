import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstat, mkdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { constants, homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { findInstance } from '../api/find-instance.ts';
import type { InstanceRecord, List } from '../../wire/records.ts';
import { isServiceName } from '../../wire/service-name.ts';
import { CliFailure, usageFailure } from '../failure.ts';
import type { Input } from '../options.ts';
import type { Session } from '../session.ts';
import { type Environment, settingsFolder, withoutKey, writePrivate } from '../settings.ts';
import { plain } from '../text.ts';

/** How ssh exits when it did not get in. A command in the instance may exit so too. */
const NOT_CONNECTED = 255;

/** Where an instance is logged in to. */
export interface Login {
  host: string;
  port: number;
  user: string;
  knownHosts: string | null;
}

const WORD = /^[A-Za-z0-9[_][A-Za-z0-9._:%[\]-]*$/;

const HOST_KEY = /^(\S+) [a-z0-9@.-]+ [A-Za-z0-9+/=]+$/;

/** The lines of known_hosts that are of this host only: a pattern or an authority would speak for the hosts of others. */
function keysOf(lines: string, host: string, port: number): string {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const own = port === 22 ? [bare, `[${bare}]:22`] : [`[${bare}]:${port}`];
  return lines
    .split('\n')
    .filter((line) => own.includes(HOST_KEY.exec(line)?.[1] ?? ''))
    .join('\n');
}

/** The login of an instance. Throws when there is none, and for words that ssh would read as something else. */
export function loginOf({ id, ssh, simulated, state }: InstanceRecord): Login {
  if (simulated) {
    throw new CliFailure(`${plain(id)} is on a simulated node, where no container runs.`, {
      next: 'berth offers says in its notes which offers are simulated.',
    });
  }
  if (ssh === null || state !== 'running') {
    throw new CliFailure(`${plain(id)} is ${plain(state)}, so there is nothing to log in to.`, {
      next: state === 'stopped' ? `Run berth start ${plain(id)}.` : `berth show ${plain(id)} says what it waits for.`,
    });
  }
  const { host, port, user, known_hosts: knownHosts } = ssh;
  if (WORD.test(host) && WORD.test(user) && Number.isInteger(port)) {
    return { host, port, user, knownHosts: knownHosts && keysOf(knownHosts, host, port) };
  }
  throw new CliFailure(`The server names a login that is none: ${plain(`${user}@${host}`)}.`, {
    next: 'Tell the operator of the server.',
  });
}

/** Adds host keys to the lines of a known_hosts file, in place of older ones of the same hosts. */
export function withHostKeys(text: string, added: readonly string[]): string {
  const lines = [...new Set(added.flatMap((one) => one.split('\n')).filter((line) => line.trim() !== ''))];
  const hosts = new Set(lines.map((line) => line.split(' ', 1)[0]));
  const kept = text.split('\n').filter((line) => line !== '' && !hosts.has(line.split(' ', 1)[0]));
  return [...kept, ...lines].map((line) => `${line}\n`).join('');
}

async function bytesOf(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0);
    throw new CliFailure(`${path} cannot be read, so it was not changed: ${plain(String(error))}.`, {
      next: 'Make it readable, and run the command again.',
    });
  }
}

async function saveHostKeys(env: Environment, logins: readonly Login[]): Promise<string> {
  const path = join(settingsFolder(env), 'known_hosts');
  const before = (await bytesOf(path)).toString();
  const added = logins.flatMap(({ knownHosts }) => knownHosts ?? []);
  const after = withHostKeys(before, added);
  if (after !== before) await writePrivate(env, path, after);
  return path;
}

/** The options by which ssh knows the host key of the server, and asks nothing about it. */
async function hostKeyOptions(env: Environment, login: Login): Promise<string[]> {
  if (login.knownHosts === null) return [];
  const path = await saveHostKeys(env, [login]);
  return ['-o', `UserKnownHostsFile="${path}"`, '-o', 'GlobalKnownHostsFile=none', '-o', 'StrictHostKeyChecking=yes'];
}

/**
 * Runs a program of the system on this terminal, without the API key: a configuration of ssh may send variables on.
 * Returns its exit status, or 128 and the signal that ended it.
 */
export async function runProgram({ env }: Session, program: string, args: readonly string[]): Promise<number> {
  let child: ChildProcess | undefined;
  // The terminal sends Ctrl-C to both; what it means is for the program to say. Who ends berth means the program: left
  // behind, its session would keep the instance in use. It may run before the call that starts it has returned.
  const ignore = (): void => undefined;
  const pass = (signal: NodeJS.Signals): void => void child?.kill(signal);
  process.on('SIGINT', ignore).on('SIGTERM', pass).on('SIGHUP', pass);
  try {
    child = spawn(program, args, { stdio: 'inherit', env: withoutKey(env) });
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    const next = program === 'rsync' ? 'Install rsync.' : "Install OpenSSH's client.";
    throw new CliFailure(`This machine has no program ${program}.`, { next });
  } finally {
    process.off('SIGINT', ignore).off('SIGTERM', pass).off('SIGHUP', pass);
  }
}

function sshOptions(input: Input): string[] {
  const identity = input.text('identity');
  return identity === undefined ? [] : ['-i', identity, '-o', 'IdentitiesOnly=yes'];
}

/** `berth ssh`: logs in with the ssh of the system, or writes entries for its configuration. */
export async function ssh(input: Input, session: Session): Promise<number | void> {
  if (input.flag('config')) return writeConfig(input, session);
  const api = await session.api();
  const [wanted] = input.operands;
  if (wanted === undefined) throw usageFailure('berth ssh needs INSTANCE.', 'berth ls lists your instances.');
  return await logIn(await findInstance(api, wanted), input, session);
}

/** A session in an instance, by the ssh of the system. */
export async function logIn(record: InstanceRecord, input: Input, session: Session): Promise<number> {
  const login = loginOf(record);
  const forwards = input.texts('forward').flatMap((text) => ['-L', text]);
  const flags = [...(input.flag('tty') ? ['-t'] : []), ...(input.flag('no-command') ? ['-N'] : [])];
  const known = await hostKeyOptions(session.env, login);
  // Words of this command stand in the place of a RemoteCommand of the user's own configuration.
  const words = input.rest.length > 0 ? ['-o', 'RemoteCommand=none'] : [];
  const options = ['-p', String(login.port), ...known, ...sshOptions(input), ...forwards, ...flags, ...words];
  const code = await runProgram(session, 'ssh', [...options, '--', `${login.user}@${login.host}`, ...input.rest]);
  // The record has such a name where nobody gave SSH a host outside.
  if (code === NOT_CONNECTED && isServiceName(login.host)) {
    session.terminal.say(
      `${login.host} is a host that only programs in the cluster find. The operator gives others one: ssh.publicHost of the chart.`,
    );
  }
  return code;
}

/** The parts of INSTANCE:PATH; undefined for a path of this machine. As scp reads it: a slash before the colon makes it local. */
export function remotePath(text: string): { instance: string; path: string } | undefined {
  const [, instance, path] = /^([^/:]+):(.*)$/s.exec(text) ?? [];
  return instance === undefined ? undefined : { instance, path: path ?? '' };
}

/** `berth cp`: copies files with the scp or the rsync of the system. */
export async function copy(input: Input, session: Session): Promise<number> {
  const remote = input.operands.map(remotePath);
  const names = new Set(remote.flatMap((one) => one?.instance ?? []));
  const [name] = names;
  if (name === undefined || names.size > 1) {
    throw usageFailure(
      'berth cp copies between this machine and one instance.',
      'Write INSTANCE:PATH for what is there.',
    );
  }
  const login = loginOf(await findInstance(await session.api(), name));
  const host = login.host.includes(':') ? `[${login.host}]` : login.host;
  const paths = input.operands.map((text, index) => {
    const there = remote[index];
    if (there !== undefined) return `${login.user}@${host}:${there.path}`;
    return text.startsWith('-') ? `./${text}` : text;
  });
  const options = [...(await hostKeyOptions(session.env, login)), ...sshOptions(input)];
  if (!input.flag('rsync')) {
    const recursive = input.flag('recursive') ? ['-r'] : [];
    return await runProgram(session, 'scp', ['-P', String(login.port), ...recursive, ...options, '--', ...paths]);
  }
  // rsync splits this at spaces, and knows quotes.
  const plainly = ['-o', 'RemoteCommand=none', '-o', 'RequestTTY=no'];
  const shell = ['ssh', '-p', String(login.port), ...options, ...plainly]
    .map((word) => `'${word.replaceAll("'", "''")}'`)
    .join(' ');
  return await runProgram(session, 'rsync', ['-a', '--partial', '-e', shell, '--', ...paths]);
}

/** An id as Berth makes them, which is the name of no other host. */
const MADE_ID = /^i-[a-z0-9]{12}$/;

/** Those of a name that only one instance has: another by it would be a login to a machine that nobody meant. */
function unmistakable<T extends Pick<InstanceRecord, 'id' | 'name'>>(records: readonly T[]): readonly T[] {
  const words = records.flatMap(({ id, name }) => [id, ...(name === null || name === id ? [] : [name])]);
  const twice = new Set(words.filter((word, at) => words.indexOf(word) !== at));
  return records.map((one) => (one.name !== null && twice.has(one.name) ? { ...one, name: null } : one));
}

/**
 * The hosts by which ssh_config knows an instance. Others of the tenant choose names: they end so that they shadow no host
 * of the user. One that ssh_config could read as more than one word is left out.
 */
export function hostsOf({ id, name }: Pick<InstanceRecord, 'id' | 'name'>): string[] {
  const words = [id, name].filter((word) => word !== null && /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(word));
  return [...new Set([...(MADE_ID.test(id) ? [id] : []), ...words.map((word) => `${word}.berth`)])];
}

/** One block of ssh_config(5). */
function blockOf(record: InstanceRecord, login: Login, knownHosts: string, identity: string | undefined): string {
  const lines = [
    `Host ${hostsOf(record).join(' ')}`,
    `  HostName ${login.host}`,
    `  Port ${login.port}`,
    `  User ${login.user}`,
    '  ServerAliveInterval 30',
    ...(login.knownHosts === null ? [] : [`  UserKnownHostsFile "${knownHosts}"`, '  StrictHostKeyChecking yes']),
    ...(identity === undefined ? [] : [`  IdentityFile "${identity}"`, '  IdentitiesOnly yes']),
  ];
  return `${lines.join('\n')}\n`;
}

/** Gives a file another content in one step. A link to it stays a link, and its mode as it was. */
async function replace(path: string, content: Buffer): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const isThere = (await lstat(path).catch(() => undefined)) !== undefined;
  const target = isThere ? await realpath(path) : path;
  const mode = isThere ? (await stat(target)).mode : 0o600;
  const fresh = `${target}.berth-${process.pid}`;
  try {
    await writeFile(fresh, content, { mode: mode & 0o777, flag: 'wx' });
    await rename(fresh, target);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}

/**
 * Writes a line at the start of a file of the user, unless the file has it. All other bytes stay, whatever their encoding.
 * Returns whether it was changed.
 */
export async function prependLine(path: string, line: string): Promise<boolean> {
  const before = await bytesOf(path);
  if (before.toString('latin1').split(/\r?\n/).includes(Buffer.from(line).toString('latin1'))) return false;
  const start = Buffer.from(before.length === 0 ? `${line}\n` : `${line}\n\n`);
  try {
    await replace(path, Buffer.concat([start, before]));
  } catch (error) {
    const next = `Write this line at its start: ${line}`;
    throw new CliFailure(`${path} was not changed: ${plain(String(error))}.`, { next });
  }
  return true;
}

/** Writes a block for each instance that runs, and has ~/.ssh/config include them. */
export async function writeConfig(input: Input, { api, env, terminal }: Session): Promise<void> {
  const identity = input.text('identity');
  const folder = settingsFolder(env);
  if (/["\n\r]/.test(`${identity ?? ''}${folder}`)) {
    throw usageFailure('ssh_config cannot carry quotes or line breaks in paths.', 'Move the key to another path.');
  }
  const { data } = await (await api()).get<List<InstanceRecord>>('/instances');
  const running = unmistakable(data).filter(
    ({ state, simulated, ssh }) => state === 'running' && !simulated && ssh !== null,
  );
  const logins = running.map((record) => [record, loginOf(record)] as const);
  const known = await saveHostKeys(
    env,
    logins.map(([, login]) => login),
  );
  const path = join(folder, 'ssh_config');
  await writePrivate(env, path, logins.map(([record, login]) => blockOf(record, login, known, identity)).join('\n'));
  const main = join(env['HOME'] || homedir(), '.ssh', 'config');
  // First: below a Host line it would count for that host only.
  if (await prependLine(main, `Include "${path}"`)) terminal.say(`${main} now includes ${path}.`);
  terminal.say(`Wrote ${logins.length} ${logins.length === 1 ? 'entry' : 'entries'}. Use them with: ssh NAME.berth`);
}
