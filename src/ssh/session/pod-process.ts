import { randomBytes } from 'node:crypto';
import { constants } from 'node:os';
import type { PodTarget } from '../../access/pod-target.ts';
import type { DirectLink } from '../../direct/direct-link.ts';
import { execInPod, type ExecExit, type ExecStream } from '../../kube/streams/exec.ts';
import { StreamRefusedError, type StreamEndpoint } from '../../kube/streams/websocket.ts';
import type { Turn } from '../../lib/byte-turns.ts';
import type { Way } from '../audit.ts';
import type { DirectWay } from '../direct-way.ts';
import { EndMarkerFilter } from './end-marker.ts';
import { readUntil } from '../../kube/streams/read-until.ts';
import { DIRECT_LAUNCHER, encodeLine, launcher, READY_BYTE, sessionScript, type Launch } from './session-script.ts';
import { hangUpScript, signalScript } from './signal-script.ts';

const LAUNCH_TIMEOUT_MS = 15_000;
const MAX_PRELUDE = 4096;
const HANG_UP_TRIES = 6;
const HANG_UP_BACKOFF_MS = 500;
const HANG_UP_TIMEOUT_MS = 15_000;

/** What a caller says of a launch. */
export type What = Pick<Launch, 'action'> & Partial<Pick<Launch, 'terminal' | 'env'>>;

/** A process of a session inside a pod. */
export interface PodProcess extends ExecStream {
  readonly way: Way;
  /** Resolves when the program has ended while stdin, which holds back its status, is open; never for a terminal. */
  readonly programEnded: Promise<void>;
  /** Bytes that wait here for the program, or for the reader of its output. */
  buffered(): number;
  /** Sends a signal, named without SIG, to the process group. Never rejects. */
  signal(name: string): Promise<void>;
  /**
   * Ends the process and its session (HUP, TERM, KILL) and drops the stream. Tries for half a minute when the API server
   * does not answer. Never rejects.
   */
  hangUp(): Promise<void>;
}

/** Runs a script through the launcher to its end; stdout is dropped. */
async function runScript(
  endpoint: StreamEndpoint,
  target: PodTarget,
  script: string,
  signal?: AbortSignal,
): Promise<ExecExit> {
  const command = launcher({ tools: target.tools, tty: false });
  const stream = await execInPod(endpoint, target, { command, tty: false, signal });
  stream.stdout.resume();
  stream.stderr.resume();
  stream.stdin.end(encodeLine(script));
  return await stream.exit;
}

async function sendScript(stream: ExecStream, given: Launch, target: PodTarget): Promise<void> {
  let launch = given;
  const { terminal } = launch;
  if (terminal !== undefined) {
    const size = (): string => `${terminal.rows} ${terminal.columns}`;
    const sentSize = size();
    launch = { ...launch, sentSize };
    stream.resize(terminal.columns, terminal.rows);
    const signal = AbortSignal.timeout(LAUNCH_TIMEOUT_MS);
    if ((await readUntil(stream.stdout, READY_BYTE, { limit: MAX_PRELUDE, signal })) === undefined) return;
    // The window may have changed since.
    if (size() !== sentSize) stream.resize(terminal.columns, terminal.rows);
  }
  stream.stdin.write(encodeLine(sessionScript(launch, target.tools)));
}

/** Ends a session. Tries for half a minute. Never rejects. */
async function hangUp(
  endpoint: StreamEndpoint,
  target: PodTarget,
  { session, terminal }: Pick<Launch, 'session' | 'terminal'>,
  leader?: number,
): Promise<void> {
  const script = hangUpScript(session, { tools: target.tools, terminal: terminal !== undefined, leader });
  for (let attempt = 0; attempt < HANG_UP_TRIES; attempt += 1) {
    try {
      const limit = AbortSignal.timeout(HANG_UP_TIMEOUT_MS);
      const exit = await runScript(endpoint, target, script, limit);
      // `failed`: the container is gone or has no shell, so there is nothing to end.
      if (exit.kind !== 'lost') return;
    } catch (error) {
      if (error instanceof StreamRefusedError && error.status === 404) return;
      // The API server or the kubelet does not answer: the process may still run.
    }
    await new Promise((resolve) => setTimeout(resolve, HANG_UP_BACKOFF_MS * 2 ** attempt).unref());
  }
}

function randomWord(): string {
  return randomBytes(12).toString('hex');
}

/** The launch of a new session. */
function launchOf(what: What): Omit<Launch, 'endMarker'> {
  return { terminal: undefined, env: new Map(), ...what, session: randomWord() };
}

/** Starts what a session asks for by exec. Rejects with `StreamRefusedError` when the pod cannot be reached. */
export async function startInPod(
  endpoint: StreamEndpoint,
  target: PodTarget,
  what: What,
  { signal, turn }: { signal?: AbortSignal; turn?: Turn },
): Promise<PodProcess> {
  const endMarker = `berth:${randomWord()}`;
  const launch = { ...launchOf(what), endMarker };
  const tty = launch.terminal !== undefined;
  const command = launcher({ tools: target.tools, tty });
  const stream = await execInPod(endpoint, target, { command, tty, signal, turn });
  try {
    await sendScript(stream, launch, target);
  } catch (error) {
    stream.close();
    throw error;
  }
  const programEnded = Promise.withResolvers<void>();
  const stderr = new EndMarkerFilter(endMarker, () => programEnded.resolve());
  stream.stderr.pipe(stderr);
  return {
    ...stream,
    way: 'exec',
    stderr,
    programEnded: programEnded.promise,
    buffered: () => stream.stdin.writableLength + stream.stdout.readableLength + stream.stderr.readableLength,
    signal: async (name) => {
      await runScript(endpoint, target, signalScript(launch.session, name, target.tools)).catch(() => undefined);
    },
    hangUp: () => {
      stream.close();
      return hangUp(endpoint, target, launch);
    },
  };
}

/** Starts what a session asks for through the link. Rejects when the helper cannot start it. */
async function startOnLink(
  endpoint: StreamEndpoint,
  target: PodTarget,
  what: What,
  link: DirectLink,
): Promise<PodProcess> {
  const launch = launchOf(what);
  const { terminal } = launch;
  const script = encodeLine(sessionScript({ ...launch, endMarker: undefined }, true));
  const channel = link.open({
    argv: DIRECT_LAUNCHER,
    script,
    ...(terminal && { terminal: { columns: terminal.columns, rows: terminal.rows } }),
  });
  const pid = await channel.opened;
  const { stdin, stdout, stderr, exit } = channel;
  return {
    way: 'direct',
    stdin,
    stdout,
    stderr,
    exit,
    programEnded: channel.inputOver,
    buffered: () => stdin.writableLength + stdout.readableLength + stderr.readableLength,
    resize: (columns, rows) => channel.resize(columns, rows),
    close: () => channel.close(),
    signal: async (name) => {
      const numbers: Record<string, number> = constants.signals;
      const number = numbers[`SIG${name}`];
      if (number !== undefined) channel.signal(number);
    },
    hangUp: async () => {
      channel.close();
      // The helper is gone then, and its programs may not be.
      if (link.wasLost) await hangUp(endpoint, target, launch, pid);
    },
  };
}

interface Ways {
  endpoint: StreamEndpoint;
  direct: Pick<DirectWay, 'to'>;
  turn: Turn;
}

/** Starts what a session asks for, by the direct way where it is open. Rejects with an error that says why not. */
export async function startProgram(
  { endpoint, direct, turn }: Ways,
  target: PodTarget,
  what: What,
  signal: AbortSignal,
): Promise<PodProcess> {
  const link = await direct.to(target);
  if (link === undefined) return await startInPod(endpoint, target, what, { signal, turn });
  return await startOnLink(endpoint, target, what, link);
}
