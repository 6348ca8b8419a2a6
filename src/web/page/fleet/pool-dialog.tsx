import { useState } from 'preact/hooks';
import type { FleetRecord } from '../../../wire/records.ts';
import { callDashboard } from '../calls/call.ts';
import { kubectlPool, type PoolChange } from '../same/commands.ts';
import { Dialog } from '../parts/controls.tsx';
import { Field, Refused } from '../parts/field.tsx';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import { useRefusal } from '../parts/use-refusal.ts';
import { note } from '../state.ts';

export type Pool = FleetRecord['pools'][number];
type Price = PoolChange['prices'][number];

interface Draft {
  currency: string;
  /** As the person types them: 1, 2, 4. */
  sizes: string;
  prices: readonly Price[];
}

const FIRST: Price = { product: '*', onDemand: '1.00', interruptible: '0.50' };

/** What the page changes of a pool, as it is now. A pool without prices gets one to begin with. */
export function specOf({ currency, sizes, prices }: Pool): PoolChange {
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
export function PoolDialog(props: { pool: Pool; close: () => void; onSaved: (pool: Pool) => void }) {
  const { pool, close, onSaved } = props;
  const [draft, setDraft] = useState<Draft>(() => ({ ...specOf(pool), sizes: pool.sizes.join(', ') }));
  const { refusal, send } = useRefusal();
  const change = changeOf(draft);
  const set = (part: Partial<Draft>): void => setDraft((before) => ({ ...before, ...part }));
  const why = (path: string): string => refusal.fields.find((field) => field.path === path)?.expected ?? '';
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
      <form
        autocomplete="off"
        onSubmit={(event) => {
          event.preventDefault();
          void send(save);
        }}
      >
        <p class="help">Per GPU and hour. Instances that run keep the price of their place.</p>
        <Refused refusal={refusal} others={others} />
        <div class="fields">
          <Field
            id="pool-currency"
            label="Currency"
            value={draft.currency}
            why={why('currency')}
            help="Three letters, for example USD."
            onInput={(currency) => set({ currency })}
          />
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
        <SameElsewhere same={{ kubectl: kubectlPool(pool.name, change) }} />
        <div class="actions">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button class="primary" type="submit">
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
