import { useCallback, useEffect, useState } from 'preact/hooks';
import type { FoundOffer } from '../../../wire/records.ts';
import { callApi } from '../calls/call.ts';
import { type ServerEvent, useFollow } from '../calls/follow.ts';
import { Alert, Empty } from '../parts/controls.tsx';
import { attempt, mayWrite, tenant } from '../state.ts';
import { PriceTable } from './price-table.tsx';
import { ANY, productsOf, type Wish } from './products.ts';
import { RentDialog } from './rent-dialog.tsx';

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
        <label for="filter-memory">GiB at least</label>
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
          <option value="time_sliced">Time-sliced</option>
        </select>
      </div>
      <div>
        <label for="filter-image">Image</label>
        <input
          id="filter-image"
          placeholder="Default"
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
          <option value="price">Price</option>
          <option value="memory">Memory</option>
          <option value="start">Start time</option>
          <option value="available">Most free</option>
        </select>
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={wish.isFree}
          onChange={(event) => set({ isFree: event.currentTarget.checked })}
        />
        <span>Free now only</span>
      </label>
    </form>
  );
}

/** What is for rent, live. `template`: the number of the one to rent with; empty for none. */
export function RentView({ template }: { template: string }) {
  const [wish, setWish] = useState(ANY);
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
  const shown = offers === undefined ? undefined : productsOf(offers, wish);
  return (
    <section aria-labelledby="rent-title">
      <div class="title">
        <div>
          <h1 id="rent-title">Rent a GPU</h1>
          <p>Prices are per hour and fixed when you get the place. You pay while its container runs.</p>
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
          <button type="button" onClick={() => setWish(ANY)}>
            Clear filters
          </button>
        </Empty>
      )}
      {shown !== undefined && shown.length > 0 && (
        <div class="card flush">
          <PriceTable products={shown} onRent={mayWrite.value ? setChosen : undefined} />
        </div>
      )}
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
