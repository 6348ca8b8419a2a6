import { connect, type Socket } from 'node:net';

export interface LoadOptions {
  port: number;
  path: string;
  headers: Record<string, string>;
  body: string;
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
  const { path, headers, body, connections, duration } = options;
  const lines = Object.entries({ host: 'bench', 'content-type': 'application/json', ...headers });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const request = Buffer.from(
    `POST ${path} HTTP/1.1\r\n${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  const samples: Samples = { whole: [], first: [], errors: 0 };
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

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

interface Samples {
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
      if (reader.status === 200) {
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
  #held: Buffer = Buffer.alloc(0);
  #need = -1;

  reset(): void {
    this.status = 0;
    this.#held = Buffer.alloc(0);
    this.#need = -1;
  }

  push(data: Buffer): boolean {
    if (this.status !== 0 && this.#need === -1) {
      this.#held = Buffer.concat([this.#held.subarray(-8), data]);
      return endsChunked(this.#held);
    }
    this.#held = this.#held.length === 0 ? data : Buffer.concat([this.#held, data]);
    if (this.status === 0) {
      const end = this.#held.indexOf('\r\n\r\n');
      if (end === -1) return false;
      const head = this.#held.toString('latin1', 0, end);
      this.status = Number(head.slice(9, 12));
      const length = /content-length: *(\d+)/i.exec(head)?.[1];
      if (length === undefined) return endsChunked(this.#held);
      this.#need = end + 4 + Number(length);
    }
    return this.#held.length >= this.#need;
  }
}

function endsChunked(data: Buffer): boolean {
  return data.length >= 5 && data.toString('latin1', data.length - 5) === '0\r\n\r\n';
}
