import { pipeline } from 'node:stream/promises';
import type { ExecExit } from '../../kube/streams/exec.ts';
import type { ServerChannel, Session } from 'ssh2';
import type { SessionKind } from '../audit.ts';
import { instanceOf, type LiveConnection } from '../connection.ts';
import { NO_STATUS, sessionEnd, signalName, type SessionEnd } from './exit.ts';
import { laneOf, type Lane } from '../ssh2/lane.ts';
import { SESSION_VARIABLE, type Action, type Terminal } from './launch.ts';
import { startInPod, type PodProcess } from './pod-process.ts';

const MAX_ENV = 64;
const MAX_ENV_LENGTH = 4096;
/** Of a variable or a terminal. */
const MAX_NAME_LENGTH = 256;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const NO_INPUT = Buffer.alloc(0);

/** What the client asked for before the session began. */
interface Preparation {
  env: Map<string, string>;
  terminal: Terminal | undefined;
  process: PodProcess | undefined;
}

function flushed(lane: Lane, text?: string): Promise<void> {
  return new Promise((resolve) => {
    lane.stderr.write(text ?? NO_INPUT, () => lane.stdout.write(NO_INPUT, () => resolve()));
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** In raw mode a terminal does not return the carriage by itself. */
function lineFor(preparation: Preparation, message: string): string {
  return preparation.terminal === undefined ? `berth: ${message}\n` : `\r\nberth: ${message}\r\n`;
}

async function start(
  connection: LiveConnection,
  preparation: Preparation,
  action: Action,
  signal: AbortSignal,
): Promise<PodProcess | SessionEnd> {
  const { gateway, login } = connection;
  const instance = instanceOf(connection);
  if (instance === undefined) return { code: NO_STATUS, message: `instance ${login.instance} is gone.` };
  if (instance.target === undefined) {
    return { code: NO_STATUS, message: `instance ${instance.name} is ${instance.condition}` };
  }
  const launch = { action, terminal: preparation.terminal, env: preparation.env };
  try {
    return await startInPod(gateway.endpoint, instance.target, launch, signal);
  } catch (error) {
    gateway.log.warn({ connection: connection.id, err: error }, 'session not started');
    const reason = error instanceof Error ? error.message : 'unknown';
    return { code: NO_STATUS, message: `instance ${instance.name} cannot be reached: ${reason}` };
  }
}

async function relay(
  channel: ServerChannel,
  lane: Lane,
  process: PodProcess,
  options: { gone: AbortSignal; tty: boolean },
): Promise<ExecExit> {
  const { gone, tty } = options;
  // The end of input closes a pipe, but would hang a terminal up; sshd leaves a terminal open too.
  channel.pipe(process.stdin, { end: !tty });
  void process.programEnded.then(() => {
    channel.unpipe(process.stdin);
    channel.resume();
    return process.stdin.end();
  });
  const outputs = [
    pipeline(process.stdout, lane.stdout, { end: false, signal: gone }),
    pipeline(process.stderr, lane.stderr, { end: false, signal: gone }),
  ];
  await Promise.allSettled(outputs);
  if (gone.aborted) return { kind: 'lost', message: 'The client is gone.' };
  return await process.exit;
}

async function run(
  connection: LiveConnection,
  channel: ServerChannel,
  work: { kind: SessionKind; action: Action; preparation: Preparation; ended: AbortController },
): Promise<void> {
  const { kind, action, preparation, ended } = work;
  const lane = laneOf(channel, connection.outlet);
  const began = connection.gateway.now();
  const inlet = connection.windows.follow(channel);
  let told: Promise<unknown> = Promise.resolve();
  const activity = {
    cut: async (message: string): Promise<void> => {
      told = lane.say(lineFor(preparation, message)).then(() => channel.exit(NO_STATUS));
      ended.abort();
      await told;
    },
    held: () => channel.readableLength + lane.waiting + (preparation.process?.held() ?? 0),
  };
  connection.activities.add(activity);
  for (const notice of connection.notices) lane.stderr.write(lineFor(preparation, notice));
  connection.notices.clear();
  const started = await start(connection, preparation, action, ended.signal);
  let end: SessionEnd;
  if ('code' in started) {
    end = started;
  } else {
    preparation.process = started;
    channel.on('data', (chunk: Buffer) => inlet.took(chunk.length));
    const exit = await relay(channel, lane, started, { gone: ended.signal, tty: preparation.terminal !== undefined });
    end = sessionEnd(exit);
    // The client is gone or the stream is: either way the program may still run.
    if (exit.kind === 'lost') void started.hangUp();
  }
  if (!ended.signal.aborted) {
    const text = end.message === undefined ? undefined : lineFor(preparation, end.message);
    await Promise.race([flushed(lane, text), aborted(ended.signal)]);
    channel.exit(end.code);
  }
  await Promise.race([told, aborted(connection.gone)]);
  channel.unpipe();
  channel.resume();
  channel.end();
  connection.activities.delete(activity);
  inlet.end();
  connection.gateway.audit({
    event: 'session',
    login: connection.login,
    connection: connection.id,
    kind,
    bytesIn: inlet.bytes,
    bytesOut: lane.bytes,
    durationMs: connection.gateway.now() - began,
    status: end.code,
  });
}

/** Serves one session channel: what comes before the program, the program, and what comes while it runs. */
export function serveSession(connection: LiveConnection, session: Session): void {
  const preparation: Preparation = { env: new Map(), terminal: undefined, process: undefined };
  const ended = new AbortController();
  connection.gone.addEventListener('abort', () => ended.abort(), { signal: ended.signal });
  // ssh2 holds the channel's own `close` back until its input was read, which a stalled program never does.
  session.on('close', () => ended.abort());
  session.on('env', (accept, reject, { key, val }) => {
    const fits = preparation.env.size < MAX_ENV && val.length <= MAX_ENV_LENGTH && !val.includes('\0');
    const allowed = key.length <= MAX_NAME_LENGTH && ENV_NAME.test(key) && key !== SESSION_VARIABLE;
    if (fits && allowed) preparation.env.set(key, val);
    // want-reply is false for most clients, and ssh2 passes no functions then.
    (fits && allowed ? accept : reject)?.();
  });
  session.on('pty', (accept, reject, info) => {
    const { term = '' } = info as { term?: string };
    if (term.length > MAX_NAME_LENGTH) {
      reject?.();
      return;
    }
    preparation.terminal = {
      term: term === '' ? 'xterm' : term,
      columns: info.cols,
      rows: info.rows,
    };
    accept?.();
  });
  session.on('window-change', (accept, _reject, info) => {
    if (preparation.terminal !== undefined)
      Object.assign(preparation.terminal, { columns: info.cols, rows: info.rows });
    preparation.process?.resize(info.cols, info.rows);
    accept?.();
  });
  session.on('signal', (accept, reject, { name }) => {
    const signal = signalName(name);
    if (signal === undefined || preparation.process === undefined) {
      reject?.();
      return;
    }
    void preparation.process.signal(signal);
    accept?.();
  });
  const begin = (kind: SessionKind, action: Action, accept: () => ServerChannel): void => {
    // At once: ssh2 refuses to accept after the client's EOF, which may be right behind.
    const channel = accept();
    if (channel === undefined) return;
    channel.on('error', () => ended.abort());
    run(connection, channel, { kind, action, preparation, ended }).catch((error: unknown) => {
      connection.gateway.log.error({ connection: connection.id, err: error }, 'session failed');
      channel.close();
    });
  };
  session.on('shell', (accept) => begin('shell', { kind: 'shell' }, accept));
  session.on('exec', (accept, reject, { command }) => {
    if (command.includes('\0')) reject();
    else begin('command', { kind: 'command', command }, accept);
  });
  session.on('subsystem', (accept, reject, { name }) => {
    if (name === 'sftp') begin('sftp', { kind: 'sftp' }, accept);
    else reject();
  });
}
