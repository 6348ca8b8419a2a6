import { randomBytes } from 'node:crypto';
import { execInPod, type ExecExit, type ExecStream } from '../../kube/streams/exec.ts';
import { StreamRefusedError, type StreamEndpoint } from '../../kube/streams/websocket.ts';
import type { PodTarget } from '../directory.ts';
import { farewellFilter } from './farewell.ts';
import { encodeLine, hangUpScript, launcher, READY_BYTE, sessionScript, signalScript, type Launch } from './launch.ts';
import { readUntil } from './read-until.ts';

const LAUNCH_TIMEOUT_MS = 15_000;
const MAX_PRELUDE = 4096;
const HANG_UP_TRIES = 6;
const HANG_UP_BACKOFF_MS = 500;
const HANG_UP_TIMEOUT_MS = 15_000;

/** A process of a session inside a pod. */
export interface PodProcess extends ExecStream {
  /**
   * Resolves when the program has ended while its stdin was open. Its exit status comes after stdin is ended; never
   * resolves for a terminal, whose status comes by itself.
   */
  readonly programEnded: Promise<void>;
  /** Bytes that wait here for the program or for whoever reads its output. */
  held(): number;
  /** Sends a signal, named without SIG, to the process group. Never rejects. */
  signal(name: string): Promise<void>;
  /**
   * Ends the process and its session (HUP, TERM, KILL) and drops the stream. Tries for a while when the API server does
   * not answer. Never rejects; resolves to whether the pod confirmed it.
   */
  hangUp(): Promise<boolean>;
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

async function sendScript(stream: ExecStream, launch: Launch, target: PodTarget): Promise<void> {
  const line = encodeLine(sessionScript(launch, target.tools));
  if (launch.terminal !== undefined) {
    stream.resize(launch.terminal.columns, launch.terminal.rows);
    const signal = AbortSignal.timeout(LAUNCH_TIMEOUT_MS);
    if ((await readUntil(stream.stdout, READY_BYTE, { limit: MAX_PRELUDE, signal })) === undefined) return;
  }
  stream.stdin.write(line);
}

async function hangUp(endpoint: StreamEndpoint, target: PodTarget, session: string): Promise<boolean> {
  for (let attempt = 0; attempt < HANG_UP_TRIES; attempt += 1) {
    try {
      const limit = AbortSignal.timeout(HANG_UP_TIMEOUT_MS);
      const exit = await runScript(endpoint, target, hangUpScript(session, target.tools), limit);
      if (exit.kind === 'exited') return true;
      // `failed` = the container is gone or has no shell: nothing to end.
      if (exit.kind === 'failed') return false;
    } catch (error) {
      if (error instanceof StreamRefusedError && error.status === 404) return false;
      // The API server or the kubelet does not answer: the process may still run.
    }
    await new Promise((resolve) => setTimeout(resolve, HANG_UP_BACKOFF_MS * 2 ** attempt).unref());
  }
  return false;
}

function randomWord(): string {
  return randomBytes(12).toString('hex');
}

/** Starts what a session asks for. Rejects with `StreamRefusedError` when no stream to the pod can be had. */
export async function startInPod(
  endpoint: StreamEndpoint,
  target: PodTarget,
  what: Pick<Launch, 'action' | 'terminal' | 'env'>,
  signal?: AbortSignal,
): Promise<PodProcess> {
  const launch: Launch = { ...what, session: randomWord(), farewell: `berth:${randomWord()}` };
  const tty = launch.terminal !== undefined;
  const command = launcher({ tools: target.tools, tty });
  const stream = await execInPod(endpoint, target, { command, tty, signal });
  try {
    await sendScript(stream, launch, target);
  } catch (error) {
    stream.close();
    throw error;
  }
  const programEnded = Promise.withResolvers<void>();
  const stderr = farewellFilter(launch.farewell, () => programEnded.resolve());
  stream.stderr.pipe(stderr);
  return {
    ...stream,
    stderr,
    programEnded: programEnded.promise,
    held: () => stream.stdin.writableLength + stream.stdout.readableLength + stream.stderr.readableLength,
    signal: async (name) => {
      await runScript(endpoint, target, signalScript(launch.session, name, target.tools)).catch(() => undefined);
    },
    hangUp: async () => {
      stream.close();
      return await hangUp(endpoint, target, launch.session);
    },
  };
}
