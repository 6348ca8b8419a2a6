import { connect, type Socket } from 'node:net';

export interface LoadOptions {
  port: number;
  path: string;
  headers: Record<string, string>;
  /** Sent with POST; without one it is a GET. */
  body?: string;
  /** Answers of any other status are errors; 200 when absent. */
  status?: number;
  connections: number;
  /** Milliseconds. */
  duration: number;
}

export interface LoadResult {
  perSecond: number;
  /** Milliseconds, whole answers. */
  p50: number;
  p99: number;
  /** Milliseconds to the first byte. */
  firstP50: number;
  errors: number;
  count: number;
}

/** Closed-loop load on bare sockets, one request at a time on each: what it costs is small beside what is measured. */
export async function load(options: LoadOptions): Promise<LoadResult> {
  const { connections, duration, status = 200 } = options;
  const request = requestOf(options);
  const samples: Samples = { status, whole: [], first: [], errors: 0 };
  const until = performance.now() + duration;
  const start = performance.now();
  await Promise.all(Array.from({ length: connections }, () => drive(options.port, request, until, samples)));
  const seconds = (performance.now() - start) / 1000;
  const whole = samples.whole.toSorted((a, b) => a - b);
  const first = samples.first.toSorted((a, b) => a - b);
  return {
    perSecond: whole.length / seconds,
    p50: quantile(whole, 0.5),
    p99: quantile(whole, 0.99),
    firstP50: quantile(first, 0.5),
    errors: samples.errors,
    count: whole.length,
  };
}

function requestOf({ path, headers, body }: LoadOptions): Buffer {
  const ofBody = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body ?? '')) };
  const lines = Object.entries({ host: 'bench', ...(body !== undefined && ofBody), ...headers });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.from(`${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1\r\n${head}\r\n${body ?? ''}`);
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

interface Samples {
  /** Of a good answer. */
  status: number;
  whole: number[];
  first: number[];
  errors: number;
}

function drive(port: number, request: Buffer, until: number, samples: Samples): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.setNoDelay(true);
    const reader = new AnswerReader();
    let startedAt = 0;
    let firstAt = 0;
    const next = (): void => {
      if (performance.now() >= until) {
        socket.destroy();
        return;
      }
      startedAt = performance.now();
      firstAt = 0;
      socket.write(request);
    };
    socket.on('connect', next);
    socket.on('data', (data: Buffer) => {
      if (firstAt === 0) firstAt = performance.now();
      if (!reader.push(data)) return;
      const now = performance.now();
      if (reader.status === samples.status) {
        samples.whole.push(now - startedAt);
        samples.first.push(firstAt - startedAt);
      } else samples.errors += 1;
      reader.reset();
      next();
    });
    socket.on('error', () => samples.errors++);
    socket.on('close', () => resolve());
    // An upstream that hangs must not hang the run.
    guard(socket, until);
  });
}

function guard(socket: Socket, until: number): void {
  setTimeout(() => socket.destroy(), until - performance.now() + 5000).unref();
}

/** Finds the end of one HTTP/1.1 answer. */
class AnswerReader {
  status = 0;
  /** The head until it is whole, then the last bytes of a chunked body. */
  #held: Buffer = Buffer.alloc(0);
  /** Bytes of the body that are still to come; undefined for a chunked one. */
  #missing: number | undefined;

  reset(): void {
    this.status = 0;
    this.#held = Buffer.alloc(0);
    this.#missing = undefined;
  }

  push(data: Buffer): boolean {
    if (this.#missing !== undefined) {
      this.#missing -= data.length;
      return this.#missing <= 0;
    }
    if (this.status !== 0) {
      this.#held = Buffer.concat([this.#held.subarray(-8), data]);
      return endsChunked(this.#held);
    }
    this.#held = this.#held.length === 0 ? data : Buffer.concat([this.#held, data]);
    const end = this.#held.indexOf('\r\n\r\n');
    if (end === -1) return false;
    const head = this.#held.toString('latin1', 0, end);
    this.status = Number(head.slice(9, 12));
    const length = /content-length: *(\d+)/i.exec(head)?.[1];
    if (length === undefined) return endsChunked(this.#held);
    this.#missing = end + 4 + Number(length) - this.#held.length;
    return this.#missing <= 0;
  }
}

function endsChunked(data: Buffer): boolean {
  return data.length >= 5 && data.toString('latin1', data.length - 5) === '0\r\n\r\n';
}
