import { randomFrom } from '../../support/random.ts';

/** Everything in a world that is left to chance, from one seed. */
export class Chance {
  readonly next: () => number;

  constructor(seed: number) {
    this.next = randomFrom(seed);
  }

  /** True with this probability. */
  is(probability: number): boolean {
    return this.next() < probability;
  }

  /** Uniform between two numbers. */
  between(least: number, most: number): number {
    return least + (most - least) * this.next();
  }

  int(least: number, most: number): number {
    return Math.floor(this.between(least, most + 1));
  }

  of<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.next() * items.length)];
  }

  /** One of several. Throws RangeError when there is none. */
  one<T>(items: readonly T[]): T {
    if (items.length === 0) throw new RangeError('There is nothing to choose from.');
    return this.of(items) as T;
  }

  /** One of several by weight. */
  weighted<T>(items: readonly (readonly [weight: number, item: T])[]): T {
    const sum = items.reduce((total, [weight]) => total + weight, 0);
    let left = this.next() * sum;
    for (const [weight, item] of items) {
      left -= weight;
      if (left < 0) return item;
    }
    const last = items.at(-1);
    if (last === undefined) throw new RangeError('There is nothing to choose from.');
    return last[1];
  }
}
