import { hasPlace } from '../../../wire/has-place.ts';
import type { FoundOffer } from '../../../wire/records.ts';
import { duration, gpuWords, memory, money } from '../parts/words.ts';

/** How much of the GPU is the renter's own, said honestly. */
const ISOLATION: Readonly<Record<FoundOffer['isolation'], string>> = {
  whole: 'Whole GPUs, yours alone',
  mig: 'A slice of a GPU with memory of its own',
  time_sliced: 'Time-sliced: other tenants share the memory of this GPU',
};

function startOf({ expected_start_seconds: seconds, image_cached: isCached, simulated }: FoundOffer): string {
  if (simulated) return 'Simulated: runs no program';
  const image = isCached ? 'Image is there already' : 'Image is fetched first';
  return seconds === undefined ? image : `${image}, about ${duration(seconds * 1000)} to the login`;
}

/** An offer, with what it costs and what it is. Without `onRent` it is only looked at. */
export function OfferCard({ offer, onRent }: { offer: FoundOffer; onRent?: (() => void) | undefined }) {
  const { price_per_hour: price, available, gpu_count: count, mig_profile: profile } = offer;
  const byPreemption = offer.available_by_preemption;
  const isThere = hasPlace(offer);
  const name = gpuWords(count, offer.gpu_name, profile);
  const verb = isThere ? 'Rent' : 'Wait for it:';
  return (
    <article class="card offer" aria-label={name}>
      <div>
        <h2>{name}</h2>
        <p class="soft">
          {memory(offer.gpu_memory_mb)} each · {offer.cpu_cores} CPUs · {memory(offer.memory_mb)} · disk up to{' '}
          {offer.disk_gb_max} GB
        </p>
        <p class="soft">
          {ISOLATION[offer.isolation]}. {startOf(offer)}.
        </p>
        <p class="soft">
          Pool <code>{offer.pool}</code>
          {offer.cuda_version !== null && ` · CUDA ${offer.cuda_version}`}
        </p>
      </div>
      <div class="deal">
        <p class="price">
          {money(price.on_demand, price.currency)} <span class="soft">an hour</span>
        </p>
        <p class="soft">interruptible {money(price.interruptible, price.currency)}</p>
        <p class={isThere ? 'free' : 'taken'}>
          {available > 0
            ? `${available} free`
            : byPreemption > 0
              ? `${byPreemption} in place of interruptible`
              : 'None free'}
        </p>
        {onRent !== undefined && (
          <button type="button" class={isThere ? 'primary' : ''} aria-label={`${verb} ${name}`} onClick={onRent}>
            {isThere ? 'Rent' : 'Wait for it'}
          </button>
        )}
      </div>
    </article>
  );
}
