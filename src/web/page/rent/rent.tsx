import { useCallback, useEffect, useState } from 'preact/hooks';
import type { FoundOffer } from '../../../wire/records.ts';
import { callApi } from '../calls/call.ts';
import type { ServerEvent } from '../calls/follow.ts';
import { Alert, Empty } from '../parts/controls.tsx';
import { useFollow } from '../parts/use-follow.ts';
import { attempt, mayWrite, tenant } from '../state.ts';
import { Filters, matches, type Wish } from './filters.tsx';
import { OfferCard } from './offer-card.tsx';
import { RentDialog } from './rent-dialog.tsx';

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
