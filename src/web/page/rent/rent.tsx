import { useCallback, useEffect, useState } from 'preact/hooks';
import { hasPlace } from '../../../wire/has-place.ts';
import type { FoundOffer } from '../../../wire/records.ts';
import { callApi } from '../calls/call.ts';
import { type ServerEvent, useFollow } from '../calls/follow.ts';
import { Alert, Empty } from '../parts/controls.tsx';
import { attempt, mayWrite, tenant } from '../state.ts';
import { OfferCard } from './offer-card.tsx';
import { RentDialog } from './rent-dialog.tsx';

/** What a person looks for among the offers. */
interface Wish {
  gpu: string;
  memoryGb: number;
  isolation: '' | FoundOffer['isolation'];
  price: string;
  isFree: boolean;
  sort: 'price' | 'memory' | 'start' | 'available';
  /** The image that the instance would have; empty: the default one. */
  image: string;
}

function matches(offer: FoundOffer, { gpu, memoryGb, isolation, price, isFree }: Wish): boolean {
  if (gpu !== '' && !offer.gpu_name.toLowerCase().includes(gpu.toLowerCase())) return false;
  if (offer.gpu_memory_mb < memoryGb * 1024) return false;
  if (isolation !== '' && offer.isolation !== isolation) return false;
  if (price !== '' && Number(offer.price_per_hour.on_demand) > Number(price)) return false;
  return !isFree || hasPlace(offer);
}

function Filters({ wish, onChange }: { wish: Wish; onChange: (wish: Wish) => void }) {
  const set = (part: Partial<Wish>): void => onChange({ ...wish, ...part });
  return (
    <form class="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <div>
        <label for="filter-gpu">GPU</label>
        <input
          id="filter-gpu"
          placeholder="Any"
          value={wish.gpu}
          autocomplete="off"
          onInput={(event) => set({ gpu: event.currentTarget.value })}
        />
      </div>
      <div>
        <label for="filter-memory">Memory, GiB at least</label>
        <input
          id="filter-memory"
          type="number"
          min="0"
          value={wish.memoryGb === 0 ? '' : wish.memoryGb}
          onInput={(event) => set({ memoryGb: Number(event.currentTarget.value) })}
        />
      </div>
      <div>
        <label for="filter-price">Price at most</label>
        <input
          id="filter-price"
          type="number"
          min="0"
          step="any"
          value={wish.price}
          onInput={(event) => set({ price: event.currentTarget.value })}
        />
      </div>
      <div>
        <label for="filter-isolation">Isolation</label>
        <select
          id="filter-isolation"
          value={wish.isolation}
          onChange={(event) => set({ isolation: event.currentTarget.value as Wish['isolation'] })}
        >
          <option value="">Any</option>
          <option value="whole">Whole GPUs</option>
          <option value="mig">MIG slices</option>
          <option value="time_sliced">Shared in time</option>
        </select>
      </div>
      <div>
        <label for="filter-image">Image</label>
        <input
          id="filter-image"
          placeholder="Default image"
          value={wish.image}
          autocomplete="off"
          spellcheck={false}
          onChange={(event) => set({ image: event.currentTarget.value.trim() })}
        />
      </div>
      <div>
        <label for="filter-sort">Sort by</label>
        <select
          id="filter-sort"
          value={wish.sort}
          onChange={(event) => set({ sort: event.currentTarget.value as Wish['sort'] })}
        >
          <option value="price">Cheapest</option>
          <option value="memory">Most GPU memory</option>
          <option value="start">Soonest started</option>
          <option value="available">Most free</option>
        </select>
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={wish.isFree}
          onChange={(event) => set({ isFree: event.currentTarget.checked })}
        />
        <span>Only what is free now</span>
      </label>
    </form>
  );
}

const SORTS: Readonly<Record<Wish['sort'], (a: FoundOffer, b: FoundOffer) => number>> = {
  price: (a, b) => Number(a.price_per_hour.on_demand) - Number(b.price_per_hour.on_demand),
  memory: (a, b) => b.gpu_memory_mb * b.gpu_count - a.gpu_memory_mb * a.gpu_count,
  start: (a, b) => (a.expected_start_seconds ?? Infinity) - (b.expected_start_seconds ?? Infinity) || 0,
  available: (a, b) => b.available - a.available,
};

const FIRST: Wish = { gpu: '', memoryGb: 0, isolation: '', price: '', isFree: false, sort: 'price', image: '' };

/** What is for rent, live. `template`: the number of the one to rent with; empty for none. */
export function RentView({ template }: { template: string }) {
  const [wish, setWish] = useState(FIRST);
  const [offers, setOffers] = useState<readonly FoundOffer[]>();
  const [chosen, setChosen] = useState<FoundOffer>();
  const [refusal, setRefusal] = useState('');
  useEffect(() => {
    void attempt(async () => {
      const body = wish.image === '' ? {} : { image: wish.image };
      setOffers((await callApi<{ data: FoundOffer[] }>(tenant.value, 'POST', '/offers/search', body)).data);
    }, setRefusal);
  }, [wish.image]);
  const onEvent = useCallback(({ type, data }: ServerEvent) => {
    if (type !== 'offer' && type !== 'deleted') return;
    const changed = data as FoundOffer;
    setOffers((before = []) => {
      if (type === 'deleted') return before.filter(({ id }) => id !== changed.id);
      const known = before.find(({ id }) => id === changed.id);
      // What the search said about the image stays: the event speaks of the default image.
      const { image_cached: _other, ...rest } = changed;
      return known === undefined
        ? [...before, changed]
        : before.map((one) => (one === known ? { ...one, ...rest } : one));
    });
  }, []);
  const trouble = useFollow('/offers', onEvent);
  const shown = offers?.filter((offer) => matches(offer, wish)).toSorted(SORTS[wish.sort]);
  return (
    <section aria-labelledby="rent-title">
      <div class="title">
        <div>
          <h1 id="rent-title">Rent a GPU</h1>
          <p>Prices are per hour and fixed when you get the place. You pay from the first login on.</p>
        </div>
      </div>
      <Filters wish={wish} onChange={setWish} />
      <Alert text={refusal || trouble} />
      {offers?.length === 0 && (
        <Empty title="Nothing is for rent">
          <p>
            No node of the cluster has a GPU that a pool offers. The operator can add one: see <code>GPUPool</code>.
          </p>
        </Empty>
      )}
      {offers !== undefined && offers.length > 0 && shown?.length === 0 && (
        <Empty title="No offer fits">
          <p>Ask for less, or clear the filters.</p>
          <button type="button" onClick={() => setWish(FIRST)}>
            Clear filters
          </button>
        </Empty>
      )}
      <ul class="offers">
        {shown?.map((offer) => (
          <li key={offer.id}>
            <OfferCard offer={offer} onRent={mayWrite.value ? () => setChosen(offer) : undefined} />
          </li>
        ))}
      </ul>
      {chosen !== undefined && (
        <RentDialog
          key={chosen.id}
          offer={chosen}
          image={wish.image}
          template={template}
          close={() => setChosen(undefined)}
          choose={setChosen}
        />
      )}
    </section>
  );
}
