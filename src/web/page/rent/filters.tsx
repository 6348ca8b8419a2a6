import type { FoundOffer } from '../../../wire/records.ts';

/** What a person looks for among the offers. */
export interface Wish {
  gpu: string;
  memoryGb: number;
  isolation: '' | FoundOffer['isolation'];
  price: string;
  isFree: boolean;
  sort: 'price' | 'memory' | 'start' | 'available';
  /** The image that the instance would have; empty: the default one. */
  image: string;
}

export function matches(offer: FoundOffer, { gpu, memoryGb, isolation, price, isFree }: Wish): boolean {
  if (gpu !== '' && !offer.gpu_name.toLowerCase().includes(gpu.toLowerCase())) return false;
  if (offer.gpu_memory_mb < memoryGb * 1024) return false;
  if (isolation !== '' && offer.isolation !== isolation) return false;
  if (price !== '' && Number(offer.price_per_hour.on_demand) > Number(price)) return false;
  return !isFree || offer.available > 0;
}

export function Filters({ wish, onChange }: { wish: Wish; onChange: (wish: Wish) => void }) {
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
        <label for="filter-sort">First</label>
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
