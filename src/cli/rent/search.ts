import type { Api } from '../api/client.ts';
import type { FoundOffer, List } from '../../wire/records.ts';
import type { Input, Options } from '../options.ts';

/** The image. */
export const IMAGE: Options = { image: { type: 'string', short: 'i', value: 'IMAGE', help: 'container image' } };

/** What says which offers are wanted. */
export const FILTERS: Options = {
  gpu: { type: 'string', short: 'g', value: 'NAME', help: 'GPUs with this in their name, for example h100' },
  gpus: { type: 'string', value: 'N', help: 'number of GPUs' },
  memory: { type: 'string', value: 'GB', help: 'memory of one GPU, at least' },
  'max-price': { type: 'string', value: 'AMOUNT', help: 'largest price of an hour' },
  interruptible: { type: 'boolean', help: 'cheaper; others may take the place' },
  ...IMAGE,
};

/** MiB of one GB of 10^9 bytes: cards have a little less than the 2^30 bytes that their names promise. */
const MIB_OF_GB = 1e9 / 1_048_576;

/** The body of POST /offers/search for these options. */
export function searchOf(input: Input): Record<string, unknown> {
  const memory = input.number('memory', 1);
  const entries = {
    gpu_count: input.number('gpus', 1),
    min_gpu_memory_mb: memory === undefined ? undefined : Math.floor(memory * MIB_OF_GB),
    max_price_per_hour: input.text('max-price'),
    image: input.text('image'),
    type: input.flag('interruptible') ? 1 : undefined,
  };
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined));
}

/** Whether all words of a text stand in the name of the GPU, in any case. */
export function hasName({ gpu_name: name }: FoundOffer, text: string): boolean {
  const words = text.toLowerCase().split(/[\s-]+/);
  return words.every((word) => name.toLowerCase().includes(word));
}

/** The offers that fit, cheapest first, free or not. */
export async function offersFor(api: Api, input: Input): Promise<readonly FoundOffer[]> {
  const { data } = await api.call<List<FoundOffer>>('POST', '/offers/search', { body: searchOf(input) });
  const name = input.text('gpu');
  return name === undefined ? data : data.filter((offer) => hasName(offer, name));
}
