import type { StreamEndpoint } from '../kube/websocket.ts';
import type { PodTarget } from './directory.ts';
import { startInPod } from './pod-process.ts';

export type LoginCheck = { ok: true; durationMs: number } | { ok: false; reason: string };

const TIMEOUT_MS = 10_000;

/**
 * Whether a login would work now: runs `true` the way every session runs, with the user's shell, home and environment.
 * What it does not cover is the client's way to the gateway. Never rejects; takes at most ten seconds.
 */
export async function checkLogin(endpoint: StreamEndpoint, target: PodTarget): Promise<LoginCheck> {
  const began = performance.now();
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  const action = { kind: 'command' as const, command: 'true' };
  const launch = { action, terminal: undefined, env: new Map<string, string>() };
  try {
    const process = await startInPod(endpoint, target, launch, limit);
    process.stdin.end();
    process.stdout.resume();
    process.stderr.resume();
    const exit = await process.exit;
    if (exit.kind === 'exited' && exit.code === 0) return { ok: true, durationMs: performance.now() - began };
    if (exit.kind === 'exited') return { ok: false, reason: `A shell in the instance ends with status ${exit.code}.` };
    return { ok: false, reason: limit.aborted ? 'No answer within ten seconds.' : exit.message };
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : 'unknown' };
  }
}
