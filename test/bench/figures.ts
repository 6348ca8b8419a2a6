/** The value below which a part (0 to 1) of the values lies; NaN without values. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Runs `work` for each item, `width` at a time. */
export async function pool<T>(items: readonly T[], width: number, work: (item: T) => Promise<unknown>): Promise<void> {
  const queue = [...items];
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
    }),
  );
}

/** What a figure is to reach, and what keeps it from there. */
export interface Aim {
  least?: number;
  most?: number;
  cause: string;
}

/** The aim in words, and why the value misses it. A value that is not there misses. */
export function judged({ least = -Infinity, most = Infinity, cause }: Aim, value: number): string {
  const words = Number.isFinite(least) ? `≥ ${least}` : `≤ ${most}`;
  return value >= least && value <= most ? words : `${words} (missed: ${cause})`;
}

export function ms(value: number): string {
  return `${Math.round(value)} ms`;
}
