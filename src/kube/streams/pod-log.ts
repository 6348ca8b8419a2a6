import type { Readable } from 'node:stream';
import { type KubeClient, pathOf } from '../client/client.ts';
import { PODS } from '../types.ts';

export interface LogTarget {
  namespace: string;
  pod: string;
  container: string;
}

export interface LogOptions {
  /** The log of the container before the last restart. */
  previous?: boolean;
  /** The answer goes on until the container ends. */
  follow?: boolean;
  /** RFC 3339. The kubelet counts in whole seconds: lines of the same second come too. */
  since?: string;
  /** Last lines. */
  tail?: number;
  /** Bytes of the answer, counted from its first line. */
  limitBytes?: number;
  signal?: AbortSignal;
}

/** One line that a container wrote. */
export interface LogLine {
  /** When the runtime read it: RFC 3339 in UTC with nine digits, so that texts compare as times do. */
  time: string;
  /** Without its line break. What is no UTF-8 has become U+FFFD. */
  text: string;
}

/** Milliseconds. The kubelet begins its answer with the first line, for which a silent program may take any time. */
const FOLLOW_HEAD_MS = 24 * 60 * 60_000;

const NEWLINE = 0x0a;
/** Bytes of a line that are kept. A program that writes no line break must not fill the memory. */
const MAX_LINE_BYTES = 64 * 1024;
const CUT = ' [line cut by Berth]';

/** The log of a container, each line with its time. Throws the KubeError of the API server or of the kubelet behind it. */
export function openPodLog(client: KubeClient, target: LogTarget, options: LogOptions): Promise<Readable> {
  const { previous, follow, since, tail, limitBytes, signal } = options;
  const { namespace, pod, container } = target;
  const query = {
    container,
    timestamps: 'true',
    ...(previous === true && { previous: 'true' }),
    ...(follow === true && { follow: 'true' }),
    ...(since !== undefined && { sinceTime: since }),
    ...(tail !== undefined && { tailLines: String(tail) }),
    ...(limitBytes !== undefined && { limitBytes: String(limitBytes) }),
  };
  return client.stream(pathOf(PODS, { namespace, name: pod }, 'log'), query, {
    ...(signal && { signal }),
    ...(follow === true && { headTimeoutMs: FOLLOW_HEAD_MS }),
  });
}

/** 2026-01-01T00:00:00.000000000Z or the same with an offset, as the kubelet writes it in the zone of its node. */
const STAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;

/** A time in UTC with nine digits; undefined for other text. */
export function stampOf(text: string): string | undefined {
  const [, seconds = '', fraction = '', zone = ''] = STAMP.exec(text) ?? [];
  const at = Date.parse(`${seconds}${zone}`);
  return Number.isNaN(at) ? undefined : `${new Date(at).toISOString().slice(0, 19)}.${fraction.padEnd(9, '0')}Z`;
}

/** Undefined for what has no time: words of the kubelet, or the end of a line whose begin was not asked for. */
function parseLine(bytes: Buffer, cut: boolean): LogLine | undefined {
  const space = bytes.subarray(0, 64).indexOf(' ');
  const time = stampOf(bytes.subarray(0, space < 0 ? 64 : space).toString('latin1'));
  if (time === undefined) return undefined;
  const text = space < 0 ? '' : bytes.subarray(space + 1).toString('utf8');
  return { time, text: cut ? text + CUT : text };
}

/** Bytes of a line that is not complete. */
class PendingLine {
  #parts: Buffer[] = [];
  #bytes = 0;
  #cut = false;

  add(part: Buffer): void {
    const kept = part.subarray(0, MAX_LINE_BYTES - this.#bytes);
    this.#cut ||= kept.length < part.length;
    if (kept.length > 0) this.#parts.push(kept);
    this.#bytes += kept.length;
  }

  take(): LogLine | undefined {
    const line = this.#bytes === 0 ? undefined : parseLine(Buffer.concat(this.#parts, this.#bytes), this.#cut);
    this.#parts = [];
    this.#bytes = 0;
    this.#cut = false;
    return line;
  }
}

/**
 * The lines of a log, in a batch per chunk. A last line without a line break comes when the log ends in good order, and
 * not when the stream breaks: its rest may follow.
 */
export async function* logLines(stream: AsyncIterable<Buffer>): AsyncGenerator<LogLine[], void, undefined> {
  const pending = new PendingLine();
  for await (const chunk of stream) {
    const batch: LogLine[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      pending.add(chunk.subarray(start, end));
      const line = pending.take();
      if (line !== undefined) batch.push(line);
      start = end + 1;
    }
    if (start < chunk.length) pending.add(chunk.subarray(start));
    if (batch.length > 0) yield batch;
  }
  const last = pending.take();
  if (last !== undefined) yield [last];
}
