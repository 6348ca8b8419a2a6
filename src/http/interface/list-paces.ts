import type { Clock } from '../../lib/clock.ts';
import { Paces } from '../../lib/paces.ts';
import { ApiError } from './errors/api-error.ts';

/** Characters that a record has as a rule, with room to spare. */
const USUAL = 2048;
/** Characters beyond that, of all records that a tenant has listed in a second. To write them takes some hundredths of it. */
const PER_SECOND = 2 * 2 ** 20;

/**
 * The pace at which a tenant has long texts listed. A thousand objects may have 16 to 64 MiB of them, and a list of these
 * takes the thread for its whole length.
 */
export class ListPaces {
  readonly #paces: Paces;

  constructor(clock: Pick<Clock, 'monotonic' | 'sleep'>) {
    this.#paces = new Paces(clock, PER_SECOND);
  }

  /** @throws ApiError rate_limit_exceeded */
  require(tenant: string): void {
    const seconds = Math.ceil(this.#paces.waitMs(tenant) / 1000);
    if (seconds === 0) return;
    const message = `The objects of this tenant have long texts, of which a list may have ${PER_SECOND} characters per second. Wait ${seconds} s, or read single objects.`;
    throw new ApiError('rate_limit_exceeded', message, { retryAfterSeconds: seconds });
  }

  /** Counts so many records of these characters together. */
  count(tenant: string, records: number, characters: number): void {
    const more = characters - records * USUAL;
    if (more > 0) this.#paces.count(tenant, more);
  }

  /** Writes the records of a list. @throws ApiError rate_limit_exceeded */
  take(tenant: string, write: () => readonly string[]): readonly string[] {
    this.require(tenant);
    const records = write();
    this.count(
      tenant,
      records.length,
      records.reduce((sum, { length }) => sum + length, 0),
    );
    return records;
  }
}
