import type { FleetRecord } from '../../../wire/records.ts';
import { useEffect, useState } from 'preact/hooks';
import { callDashboard } from '../calls/call.ts';
import { CopyLine, Dialog } from '../parts/controls.tsx';
import { DialogForm, Field, fieldsOf, Refused, useRefusal } from '../parts/form.tsx';
import { priceText } from '../parts/words.ts';
import { kubectlPool, type PoolChange } from '../same/commands.ts';
import { note } from '../state.ts';

type Pool = FleetRecord['pools'][number];
type Price = PoolChange['prices'][number];

interface Draft {
  currency: string;
  /** As the person types them: 1, 2, 4. */
  sizes: string;
  prices: readonly Price[];
}

const FIRST: Price = { product: '*', onDemand: '1.00', interruptible: '0.50' };

/** What the page changes of a pool, as it is now. A pool without prices gets one to begin with. */
function specOf({ currency, sizes, prices }: Pool): PoolChange {
  const known = prices.map((one) => ({
    product: one.gpu_name,
    onDemand: one.on_demand,
    interruptible: one.interruptible,
  }));
  return { currency, sizes, prices: known.length > 0 ? known : [FIRST] };
}

function changeOf({ currency, sizes, prices }: Draft): PoolChange {
  const numbers = sizes.split(/[\s,]+/).filter((text) => text !== '');
  return { currency, sizes: numbers.map(Number), prices };
}

function saved(pool: Pool, { currency, sizes, prices }: PoolChange, version: string): Pool {
  return {
    ...pool,
    version,
    currency,
    sizes: [...sizes],
    prices: prices.map((one) => ({
      gpu_name: one.product,
      on_demand: one.onDemand,
      interruptible: one.interruptible,
    })),
  };
}

function PriceRow(props: {
  at: number;
  price: Price;
  why: (path: string) => string;
  set: (part: Partial<Price>) => void;
  remove: () => void;
}) {
  const { at, price, why, set, remove } = props;
  const path = `prices[${at}]`;
  return (
    <fieldset class="price-row">
      <legend class="hidden">Price {at + 1}</legend>
      <Field
        id={`product-${at}`}
        label="GPU"
        value={price.product}
        why={why(`${path}.product`)}
        help={price.product === '*' ? 'Every other GPU.' : ''}
        onInput={(product) => set({ product })}
      />
      <Field
        id={`on-demand-${at}`}
        label="On demand"
        value={price.onDemand}
        why={why(`${path}.onDemand`)}
        onInput={(onDemand) => set({ onDemand })}
      />
      <Field
        id={`interruptible-${at}`}
        label="Interruptible"
        value={price.interruptible}
        why={why(`${path}.interruptible`)}
        onInput={(interruptible) => set({ interruptible })}
      />
      <button type="button" class="quiet danger" aria-label={`Remove price ${at + 1}`} onClick={remove}>
        Remove
      </button>
    </fieldset>
  );
}

/** Changes the prices of a pool, and nothing that somebody else has changed since the page read it. */
function PoolDialog(props: { pool: Pool; close: () => void; onSaved: (pool: Pool) => void }) {
  const { pool, close, onSaved } = props;
  const [draft, setDraft] = useState<Draft>(() => ({ ...specOf(pool), sizes: pool.sizes.join(', ') }));
  const { refusal, send } = useRefusal();
  const change = changeOf(draft);
  const set = (part: Partial<Draft>): void => setDraft((before) => ({ ...before, ...part }));
  const why = (path: string): string => refusal.fields.find((field) => field.path === path)?.expected ?? '';
  const of = fieldsOf('pool', draft, set, why);
  const isOther = ({ path }: { path: string }): boolean => !/^currency$|^prices\[\d+\]\./.test(path);
  const others = refusal.fields.filter((field) => isOther(field) && !field.path.startsWith('sizes'));
  const ofSizes = refusal.fields.find(({ path }) => path.startsWith('sizes'))?.expected ?? '';
  async function save(): Promise<void> {
    const body = { version: pool.version, ...change };
    const path = `/pools/${encodeURIComponent(pool.name)}`;
    const answer = await callDashboard<{ version: string }>('PATCH', path, body);
    note.value = 'Prices saved';
    onSaved(saved(pool, change, answer.version));
  }
  return (
    <Dialog id="pool" title={`Prices of ${pool.name}`} onClose={close}>
      <DialogForm
        button="Save"
        same={{ kubectl: kubectlPool(pool.name, change) }}
        onSubmit={() => send(save)}
        close={close}
      >
        <p class="help">Per GPU and hour. Instances that run keep the price of their place.</p>
        <Refused refusal={refusal} others={others} />
        <div class="fields">
          <Field label="Currency" help="Three letters, for example USD." {...of('currency')} />
          <Field
            id="pool-sizes"
            label="GPUs of one instance"
            value={draft.sizes}
            why={ofSizes}
            help="For example 1, 2, 4, 8."
            onInput={(sizes) => set({ sizes })}
          />
        </div>
        {draft.prices.map((price, at) => (
          <PriceRow
            key={at}
            at={at}
            price={price}
            why={why}
            set={(part) => set({ prices: draft.prices.with(at, { ...price, ...part }) })}
            remove={() => set({ prices: draft.prices.toSpliced(at, 1) })}
          />
        ))}
        <button
          type="button"
          class="small"
          onClick={() => set({ prices: [...draft.prices, { ...FIRST, product: '' }] })}
        >
          Add a price
        </button>
      </DialogForm>
    </Dialog>
  );
}

function PoolCard({ pool, onChange }: { pool: Pool; onChange: (() => void) | undefined }) {
  const { name, currency, nodes, gpus, free, prices, sizes } = pool;
  return (
    <li class="card pool">
      <h3>{name}</h3>
      <p class="soft">
        {nodes.toLocaleString()} {nodes === 1 ? 'node' : 'nodes'}, {gpus.toLocaleString()} GPUs and slices,{' '}
        <strong class={free > 0 ? 'free' : 'taken'}>{free.toLocaleString()} free</strong>
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
                {priceText(price, currency)}{' '}
                <span class="soft">· interruptible {priceText(interruptible, currency)}</span>
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
      {pools.length === 0 && (
        <p>There is no GPUPool: nothing is offered. Make one: kubectl apply -f deploy/samples/gpupool.yaml</p>
      )}
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
