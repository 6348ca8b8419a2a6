import type { Api } from '../api/client.ts';
import type { FoundOffer, List } from '../../wire/records.ts';
import { CliFailure, EXIT } from '../failure.ts';
import { didYouMean } from '../nearest.ts';
import type { Input, Options } from '../options.ts';
import { plain } from '../text.ts';

/** The image. */
export const IMAGE: Options = {
  image: { type: 'string', short: 'i', value: 'IMAGE', field: 'template_image', help: 'container image' },
};

/** What says which offers are wanted. */
export const FILTERS: Options = {
  gpu: { type: 'string', short: 'g', value: 'NAME', names: 'gpu', help: 'GPUs of this name, for example h100' },
  gpus: { type: 'string', value: 'N', form: 'count', field: 'gpu_count', help: 'number of GPUs' },
  memory: {
    type: 'string',
    value: 'GB',
    form: 'count',
    field: 'min_gpu_memory_mb',
    help: 'memory of one GPU, at least',
  },
  'max-price': {
    type: 'string',
    value: 'AMOUNT',
    form: 'amount',
    field: 'max_price_per_hour',
    help: 'largest price of an hour, also of later starts',
  },
  kind: {
    type: 'string',
    value: 'KIND',
    values: ['whole', 'mig', 'time-sliced'],
    field: 'isolation',
    help: 'whole, mig or time-sliced; a named GPU is a whole one',
  },
  interruptible: { type: 'boolean', help: 'cheaper; others may take the place' },
  ...IMAGE,
};

/** MiB of one GB of 10^9 bytes: cards have a little less than the 2^30 bytes that their names promise. */
const MIB_OF_GB = 1e9 / 1_048_576;

/** The body of POST /offers/search for these options. */
export function searchOf(input: Input): Record<string, unknown> {
  const memory = input.number('memory');
  const entries = {
    gpu_count: input.number('gpus'),
    min_gpu_memory_mb: memory === undefined ? undefined : Math.floor(memory * MIB_OF_GB),
    max_price_per_hour: input.text('max-price'),
    image: input.text('image'),
    isolation: input.text('kind')?.replace('-', '_'),
    type: input.flag('interruptible') ? 1 : undefined,
  };
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined));
}

const wordsOf = (text: string): string[] =>
  text
    .toLowerCase()
    .split(/[\s_-]+/)
    .filter(Boolean);

/**
 * Whether all words of a text stand in the name of the GPU, in any case: whole words, so that l4 is no L40S. Words of the name
 * that follow each other may be written as one: rtx4090.
 */
export function hasName({ gpu_name: name }: Pick<FoundOffer, 'gpu_name'>, text: string): boolean {
  const [words, parts] = [wordsOf(text), wordsOf(name)];
  const runs = new Set(
    parts.flatMap((_, from) => parts.slice(from).map((_part, more) => parts.slice(from, from + more + 1).join(''))),
  );
  return words.length > 0 && words.every((word) => runs.has(word));
}

/** Places of an offer in the order in which people want them: a GPU of one's own, then a slice, then one that is shared. */
const ORDER = ['whole', 'mig'];

function rankOf({ isolation, simulated }: FoundOffer): number {
  const rank = ORDER.indexOf(isolation);
  return (simulated ? ORDER.length + 1 : 0) + (rank === -1 ? ORDER.length : rank);
}

/** The offers that fit, free or not: whole GPUs before slices and simulated ones last, each of them cheapest first. */
export async function offersFor(api: Api, input: Input): Promise<readonly FoundOffer[]> {
  const { data } = await api.call<List<FoundOffer>>('POST', '/offers/search', { body: searchOf(input) });
  const name = input.text('gpu');
  const ranked = data.toSorted((a, b) => rankOf(a) - rankOf(b));
  if (name === undefined) return ranked;
  const named = ranked.filter((offer) => hasName(offer, name));
  if (named.length > 0 || data.length === 0) return named;
  const known = [...new Set(data.map((offer) => offer.gpu_name))];
  throw new CliFailure(`No GPU that fits is called ${name}.`, {
    exitCode: EXIT.noCapacity,
    next:
      didYouMean(
        name,
        known.flatMap((one) => [one, ...wordsOf(one)]),
      ) ?? `There are: ${known.map(plain).join(', ')}.`,
  });
}
