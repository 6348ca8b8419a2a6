import { useEffect, useState } from 'preact/hooks';
import { callDashboard } from '../calls/call.ts';
import { kubectlPool } from '../same/commands.ts';
import { CopyLine } from '../parts/controls.tsx';
import { money } from '../parts/words.ts';
import { type Pool, PoolDialog, specOf } from './pool-dialog.tsx';

function PoolCard({ pool, onChange }: { pool: Pool; onChange: (() => void) | undefined }) {
  const { name, currency, nodes, gpus, free, prices, sizes } = pool;
  return (
    <li class="card pool">
      <h3>{name}</h3>
      <p class="soft">
        {nodes} {nodes === 1 ? 'node' : 'nodes'}, {gpus} GPUs,{' '}
        <strong class={free > 0 ? 'free' : 'taken'}>{free} free</strong>
      </p>
      <p class="soft">For rent: {sizes.join(', ')} at once</p>
      {prices.length === 0 ? (
        <p class="soft">No prices: renting is free.</p>
      ) : (
        <dl class="prices">
          {prices.map(({ gpu_name: product, on_demand: price, interruptible }) => (
            <div key={product}>
              <dt>{product === '*' ? 'Every other GPU' : product}</dt>
              <dd>
                {money(price, currency, 6)}{' '}
                <span class="soft">· interruptible {money(interruptible, currency, 6)}</span>
              </dd>
            </div>
          ))}
        </dl>
      )}
      {onChange === undefined ? (
        <details>
          <summary>
            Change the prices<span class="hidden"> of {name}</span>
          </summary>
          <p class="help">Instances keep the price of their place. Change the amounts in the line, and run it.</p>
          <CopyLine label={`kubectl for ${name}`} text={kubectlPool(name, specOf(pool))} />
        </details>
      ) : (
        <button type="button" class="small" aria-label={`Change the prices of ${name}`} onClick={onChange}>
          Change the prices
        </button>
      )}
    </li>
  );
}

/** The pools, which those change here whom the cluster lets patch them. */
export function Pools({ pools, onSaved }: { pools: readonly Pool[]; onSaved: (pool: Pool) => void }) {
  const [mayChange, setMayChange] = useState(false);
  const [changed, setChanged] = useState<Pool>();
  useEffect(() => {
    // Without an answer there is the line for kubectl.
    void callDashboard<{ change: boolean }>('GET', '/pools/rights').then(
      ({ change }) => setMayChange(change),
      () => undefined,
    );
  }, []);
  return (
    <section aria-labelledby="pools-title">
      <h2 id="pools-title">Pools and prices</h2>
      <ul class="pools">
        {pools.map((pool) => (
          <PoolCard
            key={pool.name}
            pool={pool}
            onChange={mayChange && pool.version !== null ? () => setChanged(pool) : undefined}
          />
        ))}
      </ul>
      {changed !== undefined && (
        <PoolDialog
          pool={changed}
          close={() => setChanged(undefined)}
          onSaved={(pool) => {
            setChanged(undefined);
            onSaved(pool);
          }}
        />
      )}
    </section>
  );
}
