import { useState } from 'preact/hooks';
import { hasPlace } from '../../../wire/has-place.ts';
import type { FoundOffer } from '../../../wire/records.ts';
import { cpus, duration, memory, priceText, shortGpu } from '../parts/words.ts';
import type { Product } from './products.ts';

/** How much of the GPU is the renter's own. */
const ISOLATION: Readonly<Record<FoundOffer['isolation'], { title: string; says: string }>> = {
  whole: { title: 'Whole GPU', says: 'No other tenant uses it' },
  mig: { title: 'MIG slice', says: 'A part of a GPU with memory of its own' },
  time_sliced: { title: 'Time-sliced', says: "Other tenants share this GPU's memory" },
};

/** Places that the bar shows one by one. */
const MOST_PLACES = 8;

function Places({ offer: { available, available_by_preemption: byPreemption } }: { offer: FoundOffer }) {
  const free = Math.min(available, MOST_PLACES);
  const taken = Math.min(byPreemption, MOST_PLACES - free);
  return (
    <>
      <span class="places" aria-hidden="true">
        {Array.from({ length: MOST_PLACES }, (_, at) => (
          <i key={at} class={at < free ? 'is-free' : at < free + taken ? 'is-held' : ''} />
        ))}
      </span>
      <span class={available > 0 ? 'free' : byPreemption > 0 ? 'held' : 'taken'}>
        {available > 0 ? `${available} free` : byPreemption > 0 ? `${byPreemption} by preemption` : 'None free'}
      </span>
    </>
  );
}

function startOf({ expected_start_seconds: seconds, image_cached: isCached, simulated }: FoundOffer): string {
  if (simulated) return 'Runs no program';
  if (seconds !== undefined) return `Starts in about ${duration(seconds * 1000)}`;
  return isCached ? 'Image on the node' : 'Image is pulled first';
}

/** How many GPUs, as a stepper that has the numbers for rent. */
function Count({ product, chosen, choose }: { product: Product; chosen: FoundOffer; choose: (id: number) => void }) {
  const { key, offers } = product;
  return (
    <fieldset class="segments">
      <legend class="hidden">Number of {offers[0].gpu_name}</legend>
      <div>
        {offers.map(({ id, gpu_count: count }) => (
          <label key={id}>
            <input type="radio" name={`count ${key}`} checked={id === chosen.id} onChange={() => choose(id)} />
            <span>{count}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

function Row({ product, onRent }: { product: Product; onRent: ((offer: FoundOffer) => void) | undefined }) {
  const [id, setId] = useState<number>();
  const offer = product.offers.find((one) => one.id === id) ?? product.offers[0];
  const { price_per_hour: price, gpu_count: count, gpu_name: name, mig_profile: profile, isolation } = offer;
  const isThere = hasPlace(offer);
  const what = `${count} × ${name}${profile === null || name.endsWith(profile) ? '' : ` ${profile}`}`;
  return (
    <tr>
      <th scope="row">
        <span title={name}>{shortGpu(name)}</span>
        <span class="soft block facts-in-line">
          {offer.simulated && <span class="chip">simulated</span>}
          <span>{memory(offer.gpu_memory_mb)}</span>
          <span title={ISOLATION[isolation].says}>{ISOLATION[isolation].title}</span>
          {isolation === 'time_sliced' && <span>shared memory</span>}
        </span>
      </th>
      <td data-label="How many">
        <Count product={product} chosen={offer} choose={setId} />
      </td>
      <td data-label="Machine">
        <span class="nowrap">
          {cpus(offer.cpu_cores)} · {memory(offer.memory_mb)}
        </span>
        <span class="soft block facts-in-line">
          <span>Disk to {offer.disk_gb_max.toLocaleString()} GB</span>
          {offer.cuda_version !== null && <span>CUDA {offer.cuda_version}</span>}
          {offer.pool !== 'default' && <span>Pool {offer.pool}</span>}
        </span>
      </td>
      <td data-label="Free">
        <Places offer={offer} />
        <span class="soft block">{startOf(offer)}</span>
      </td>
      <td data-label="Per hour" class="number">
        <span class="price">{priceText(price.on_demand, price.currency)}</span>
        <span class="soft block other">{priceText(price.interruptible, price.currency)} interruptible</span>
      </td>
      {onRent !== undefined && (
        <td class="action">
          <button
            type="button"
            class={isThere ? 'primary' : ''}
            aria-label={`${isThere ? 'Rent' : 'Queue for'} ${what}`}
            onClick={() => onRent(offer)}
          >
            {isThere ? 'Rent' : 'Queue'}
          </button>
        </td>
      )}
    </tr>
  );
}

/** Prices by GPU. Without `onRent` they are only looked at. */
export function PriceTable(props: { products: readonly Product[]; onRent: ((offer: FoundOffer) => void) | undefined }) {
  const { products, onRent } = props;
  return (
    <table class="products">
      <caption class="hidden">GPUs and their prices per hour</caption>
      <thead>
        <tr>
          {['GPU', 'How many', 'Machine', 'Free', 'Per hour'].map((name) => (
            <th scope="col" key={name}>
              {name}
            </th>
          ))}
          {onRent !== undefined && (
            <th scope="col">
              <span class="hidden">Actions</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {products.map((product) => (
          <Row key={product.key} product={product} onRent={onRent} />
        ))}
      </tbody>
    </table>
  );
}
