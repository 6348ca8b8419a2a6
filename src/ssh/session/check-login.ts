import type { ExecExit } from '../../kube/streams/exec.ts';
import type { StreamEndpoint } from '../../kube/streams/websocket.ts';
import { JUPYTER_PORT, JUPYTER_PROGRAMS } from '../../resources/pod/jupyter.ts';
import { TOOLS_BIN } from '../../resources/pod/tools-volume.ts';
import type { PodTarget } from '../directory.ts';
import { startInPod } from './pod-process.ts';

export type LoginCheck = { ok: true; durationMs: number } | { ok: false; reason: string };

const TIMEOUT_MS = 10_000;

/** Runs a command the way every session runs, with the user's shell, home and environment, and drops its output. */
async function runInside(
  endpoint: StreamEndpoint,
  target: PodTarget,
  command: string,
  limit: AbortSignal,
): Promise<ExecExit> {
  const launch = { action: { kind: 'command' as const, command }, terminal: undefined, env: new Map<string, string>() };
  const process = await startInPod(endpoint, target, launch, limit);
  process.stdin.end();
  process.stdout.resume();
  process.stderr.resume();
  return await process.exit;
}

/**
 * Whether a login would work now: runs `true` as a session would. What it does not cover is the client's way to the
 * gateway. Never rejects; takes at most ten seconds.
 */
export async function checkLogin(endpoint: StreamEndpoint, target: PodTarget): Promise<LoginCheck> {
  const began = performance.now();
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const exit = await runInside(endpoint, target, 'true', limit);
    if (exit.kind === 'exited' && exit.code === 0) return { ok: true, durationMs: performance.now() - began };
    if (exit.kind === 'exited') return { ok: false, reason: `A shell in the instance ends with status ${exit.code}.` };
    return { ok: false, reason: limit.aborted ? 'No answer within ten seconds.' : exit.message };
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : 'unknown' };
  }
}

const MISSING = 3;
const SILENT = 4;
// What answers may have been started by the user himself, from wherever he has it.
const LOOK_FOR_JUPYTER = `${TOOLS_BIN}/busybox timeout 5 ${TOOLS_BIN}/relay tcp 127.0.0.1 ${JUPYTER_PORT} </dev/null 2>/dev/null | grep -q '^ok$' && exit
command -v ${JUPYTER_PROGRAMS.join(' >/dev/null || command -v ')} >/dev/null || exit ${MISSING}
exit ${SILENT}`;

/**
 * Whether Jupyter answers in an instance with tools, does not yet, or is not installed; undefined when the instance
 * cannot be asked. Never rejects; takes at most ten seconds.
 */
export async function checkJupyter(
  endpoint: StreamEndpoint,
  target: PodTarget,
): Promise<'answers' | 'silent' | 'missing' | undefined> {
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  const exit = await runInside(endpoint, target, LOOK_FOR_JUPYTER, limit).catch(() => undefined);
  if (exit?.kind !== 'exited') return undefined;
  if (exit.code === MISSING) return 'missing';
  return exit.code === 0 ? 'answers' : 'silent';
}
