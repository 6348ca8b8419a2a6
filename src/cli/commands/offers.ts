import { hasPlace } from '../../wire/has-place.ts';
import { hourlyPrice } from '../../wire/hourly-price.ts';
import type { FoundOffer } from '../../wire/records.ts';
import type { Input } from '../options.ts';
import { offersFor } from '../rent/search.ts';
import { printJson, type Session } from '../session.ts';
import { gibibytes, table } from '../text.ts';

/** How an offer shares its GPU with others. */
export function kindOf({ isolation, mig_profile: profile }: FoundOffer): string {
  if (isolation === 'mig') return `MIG ${profile ?? ''}`.trim();
  return isolation === 'whole' ? 'whole' : 'time-sliced';
}

/** How offers are shown. */
export interface OfferView {
  /** Prices of interruptible instances. */
  interruptible?: boolean;
  /** Numbers to choose by in front. */
  numbered?: boolean;
  /** Columns of the screen. */
  width?: number | undefined;
}

/** Offers as people compare them. */
export function offerTable(offers: readonly FoundOffer[], { interruptible, numbered, width }: OfferView = {}): string {
  const titles = ['OFFER', 'GPU', 'MEMORY', 'KIND', 'CPU', 'RAM', 'DISK', 'FREE', 'PER HOUR', 'NOTES'];
  const rows = offers.map((offer) => [
    String(offer.id),
    `${offer.gpu_count} x ${shortGpu(offer.gpu_name, width)}`,
    gibibytes(offer.gpu_memory_mb),
    kindOf(offer),
    String(offer.cpu_cores),
    gibibytes(offer.memory_mb),
    `${offer.disk_gb_max} GB`,
    String(offer.available),
    priceOf(offer, interruptible === true),
    notesOf(offer, interruptible === true),
  ]);
  const fit = { width, optional: ['CPU', 'RAM', 'DISK', 'FREE', 'MEMORY', 'KIND'], kept: ['GPU'], sentences: 16 };
  if (!numbered) return table(titles, rows, fit);
  // Who chooses by the number needs no id.
  const numbers = rows.map((row, index) => [`${index + 1})`, ...row.slice(1)]);
  return table(['', ...titles.slice(1)], numbers, fit);
}

/** The name of a GPU, on a screen without the vendor that most of them have. */
export function shortGpu(name: string, width: number | undefined): string {
  return width === undefined ? name : name.replace(/^NVIDIA[- ]/, '');
}

/** The price of an hour with its currency. */
export function priceOf(offer: FoundOffer, interruptible: boolean): string {
  return `${hourlyPrice(offer, interruptible)} ${offer.price_per_hour.currency}`;
}

function notesOf(offer: FoundOffer, interruptible: boolean): string {
  const { simulated, image_cached: cached, expected_start_seconds: seconds, available_by_preemption: more } = offer;
  const start = seconds === undefined ? undefined : `starts in about ${Math.ceil(seconds)} s`;
  const notes = [
    simulated ? 'simulated' : undefined,
    !interruptible && more > 0 ? `${more} more by preemption` : undefined,
    cached ? 'image is there' : undefined,
    start,
  ];
  return notes.filter((note) => note !== undefined).join(', ');
}

/** `berth offers`: what is for rent, whole GPUs first, then the cheapest. */
export async function offers(input: Input, session: Session): Promise<void> {
  const found = await offersFor(await session.api(), input);
  const shown = found.filter((offer) => input.flag('all') || hasPlace(offer, input.flag('interruptible')));
  if (input.flag('json')) return printJson(session, { object: 'list', data: shown });
  const format = input.text('output');
  if (format === 'name') return session.terminal.out(shown.map(({ id }) => `${id}\n`).join(''));
  const width = format === 'wide' ? undefined : session.terminal.columns.out;
  const view = { interruptible: input.flag('interruptible'), width };
  if (shown.length > 0) return session.terminal.out(offerTable(shown, view));
  const taken = found.length > 0 ? ` ${found.length} fit and are taken: add --all to see them.` : '';
  session.terminal.say(`No offer that fits has a free place.${taken}`);
}
