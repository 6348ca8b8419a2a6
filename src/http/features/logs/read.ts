import type { KubeClient } from '../../../kube/client/client.ts';
import { NewestLines } from '../../../kube/streams/newest-lines.ts';
import {
  type LogLine,
  logLines,
  type LogOptions,
  type LogTarget,
  openPodLog,
  stampOf,
} from '../../../kube/streams/pod-log.ts';
import { JUPYTER_LINE } from '../../../resources/pod/jupyter.ts';
import { parseDuration } from '../../../resources/schema.ts';
import { LOG_LIMITS, type LogQuery } from './schema.ts';

/** Bytes that are read of a log for one answer: more than a kubelet keeps in one file by default (10 MiB). */
const MAX_READ = 16 * 1024 * 1024;

/** Whether a line belongs to what was asked for. */
export function isOfSource(source: LogQuery['source'], { text }: LogLine): boolean {
  return source === 'container' || !text.startsWith(JUPYTER_LINE);
}

/** The time from which lines are asked for, in UTC with nine digits. */
export function sinceOf(since: string | undefined, now: number): string | undefined {
  if (since === undefined) return undefined;
  const isTime = since.includes('T');
  const at = isTime ? Date.parse(since) : now - parseDuration(since);
  // A time may have more digits than the log.
  return (at > 0 ? stampOf(since) : undefined) ?? stampOf(new Date(Math.max(0, at)).toISOString());
}

/** The whole second, as the kubelet takes it. */
export function secondOf(time: string): string {
  return `${time.slice(0, 19)}Z`;
}

/** The newest of these lines that were asked for. */
export function chooseLines(lines: readonly LogLine[], query: LogQuery, now: number): LogLine[] {
  const since = sinceOf(query.since, now);
  const newest = new NewestLines({ lines: query.tail, bytes: LOG_LIMITS.bytes });
  for (const line of lines) {
    if (isOfSource(query.source, line) && (since === undefined || line.time >= since)) newest.add(line);
  }
  return newest.lines;
}

export interface ReadOptions {
  client: KubeClient;
  query: LogQuery;
  now: number;
  signal: AbortSignal;
  /** Resolves when the tenant may read on. */
  pace: (characters: number) => Promise<void>;
}

/** Characters of a line beside its text: its time, and what a short one costs. */
const LINE_CHARS = 64;

/** Characters of lines, as they count for the pace of a tenant. */
export function charactersOf(lines: readonly LogLine[]): number {
  return lines.reduce((sum, { text }) => sum + text.length + LINE_CHARS, 0);
}

/** The last lines of a log. Throws what the kubelet answers. */
export async function readLog(target: LogTarget, { client, query, now, signal, pace }: ReadOptions) {
  const { source, tail, previous } = query;
  const since = sinceOf(query.since, now);
  const options: LogOptions = {
    previous,
    signal,
    limitBytes: MAX_READ,
    ...(since !== undefined && { since: secondOf(since) }),
    // Lines that are left out later must not take the places of others.
    ...(source === 'container' && { tail }),
  };
  const newest = new NewestLines({ lines: tail, bytes: LOG_LIMITS.bytes });
  for await (const batch of logLines(await openPodLog(client, target, options))) {
    for (const line of batch) {
      if (isOfSource(source, line) && (since === undefined || line.time >= since)) newest.add(line);
    }
    await pace(charactersOf(batch));
  }
  return { lines: newest.lines, truncated: newest.truncated };
}
