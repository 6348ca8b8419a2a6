import type { MonitorLine } from '../../resources/pod/monitor.ts';
import type { MonitorState } from './decide/observed.ts';

/** The answer of an exporter, undefined for none, to a question of `askedAt` (milliseconds since the epoch). */
export function monitorStateOf(said: MonitorLine | undefined, askedAt: number): MonitorState {
  if (said === undefined) return { gpus: 'silent', askedAt, busyAt: undefined };
  const { tool, measured, idleSeconds } = said;
  const isTool = tool !== 'none' && tool !== 'failed';
  const gpus = isTool ? (measured > 0 ? ('measured' as const) : ('partial' as const)) : tool;
  return { gpus, askedAt, busyAt: idleSeconds === undefined ? undefined : askedAt - idleSeconds * 1000 };
}
