import { Pool } from 'undici';

export interface Load {
  url: string;
  path: string;
  headers: Record<string, string>;
  concurrency: number;
  seconds: number;
  expected: number;
}

export interface Measured {
  count: number;
  perSecond: number;
  p50: number;
  p99: number;
}

/** Sends requests as fast as they are answered; milliseconds each took. Throws on any other status than expected. */
export async function measure(load: Load): Promise<Measured> {
  const pool = new Pool(load.url, { connections: load.concurrency, pipelining: 1 });
  const times: number[] = [];
  const begin = performance.now();
  const end = begin + load.seconds * 1000;
  async function worker(): Promise<void> {
    while (performance.now() < end) {
      const start = performance.now();
      const { statusCode, body } = await pool.request({ method: 'GET', path: load.path, headers: load.headers });
      await body.dump({ limit: Number.MAX_SAFE_INTEGER });
      if (statusCode !== load.expected) throw new Error(`${load.path} answered ${statusCode}`);
      times.push(performance.now() - start);
    }
  }
  await Promise.all(Array.from({ length: load.concurrency }, worker));
  const took = (performance.now() - begin) / 1000;
  await pool.close();
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { count: times.length, perSecond: times.length / took, p50: at(0.5), p99: at(0.99) };
}
