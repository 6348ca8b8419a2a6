import { costSoFar } from '../../../wire/cost-so-far.ts';
import type { InstanceRecord } from '../../../wire/records.ts';
import { type Signal, signal, useComputed } from '@preact/signals';
import { useMemo, useState } from 'preact/hooks';
import { type ServerEvent, useFollow } from '../calls/follow.ts';
import { Alert, Dialog, Empty, Link } from '../parts/controls.tsx';
import { joined, ratesOf } from '../parts/rates.ts';
import { age, gpus, money, priceText, STATES, titleOf } from '../parts/words.ts';
import { mayWrite, roughly, spent, tenant } from '../state.ts';
import { Actions } from './actions.tsx';
import { arranged, type Column, type ListWish, NEWEST } from './arrange.ts';
import { Bulk } from './bulk.tsx';

interface Sum {
  running: number;
  perHour: string;
  waiting: number;
}

const NO_INSTANCES: Sum = { running: 0, perHour: '', waiting: 0 };

/**
 * The instances of a tenant. Each has a signal of its own, so that a change paints one row; changes of one frame are
 * applied together.
 */
class LiveList {
  /** Those that are wished for, in order; undefined until the first snapshot. */
  readonly ids: Signal<readonly string[] | undefined> = signal(undefined);
  /** Of all instances: how many run, what these cost in an hour, and how many wait. */
  readonly summary: Signal<Sum> = signal(NO_INSTANCES);
  readonly wish: Signal<ListWish> = signal(NEWEST);
  readonly chosen: Signal<ReadonlySet<string>> = signal(new Set());
  readonly #records = new Map<string, Signal<InstanceRecord>>();
  #waiting: ServerEvent[] = [];

  readonly add = (event: ServerEvent): void => {
    this.#waiting.push(event);
    if (this.#waiting.length > 1) return;
    // A page in the background gets no frames.
    if (document.hidden) queueMicrotask(this.#apply);
    else requestAnimationFrame(this.#apply);
  };

  record(id: string): Signal<InstanceRecord> | undefined {
    return this.#records.get(id);
  }

  get size(): number {
    return this.#records.size;
  }

  look(wish: ListWish): void {
    this.wish.value = wish;
    this.#arrange();
  }

  choose(ids: readonly string[], isChosen: boolean): void {
    const chosen = new Set(this.chosen.value);
    for (const id of ids) {
      if (isChosen) chosen.add(id);
      else chosen.delete(id);
    }
    this.chosen.value = chosen;
  }

  /** Those that are still there. */
  chosenRecords(): InstanceRecord[] {
    return [...this.chosen.value].flatMap((id) => this.#records.get(id)?.value ?? []);
  }

  readonly #apply = (): void => {
    const events = this.#waiting;
    this.#waiting = [];
    for (const { type, data } of events) {
      if (type === 'snapshot' || type === 'resync') this.#reset((data as { data: InstanceRecord[] }).data);
      else if (type === 'instance') this.#set(data as InstanceRecord);
      else if (type === 'deleted') this.#records.delete((data as { id: string }).id);
    }
    this.#arrange();
    this.#sum();
  };

  #arrange(): void {
    const known = this.ids.peek();
    const newest = [...this.#records.values()].map((record) => record.peek()).toReversed();
    const ids = arranged(newest, this.wish.peek(), roughly.peek()).map(({ id }) => id);
    if (known === undefined || ids.length !== known.length || ids.some((id, at) => id !== known[at])) {
      this.ids.value = ids;
    }
  }

  /** In one walk for all changes of a frame, and not by the signals: a thousand would tell of themselves each time. */
  #sum(): void {
    const all = [...this.#records.values()].map((record) => record.peek());
    const running = all.filter(({ state }) => state === 'running');
    const found: Sum = {
      running: running.length,
      perHour: joined(ratesOf(running), priceText),
      waiting: all.filter(({ state }) => state === 'pending' || state === 'interrupted').length,
    };
    const before = this.summary.peek();
    const isSame = Object.entries(found).every(([name, value]) => before[name as keyof Sum] === value);
    if (before.perHour !== found.perHour) spent();
    if (!isSame) this.summary.value = found;
  }

  #reset(all: readonly InstanceRecord[]): void {
    const kept = new Set(all.map(({ id }) => id));
    for (const id of this.#records.keys()) if (!kept.has(id)) this.#records.delete(id);
    for (const one of all) this.#set(one);
  }

  #set(record: InstanceRecord): void {
    const known = this.#records.get(record.id);
    if (known === undefined) this.#records.set(record.id, signal(record));
    else known.value = record;
  }
}

export function State({ instance }: { instance: Pick<InstanceRecord, 'state' | 'place_in_line'> }) {
  const { state, place_in_line: place } = instance;
  return (
    <span class={`state ${state}`}>
      {STATES[state]}
      {place !== null && ` · place ${place} in line`}
    </span>
  );
}

/** Empty before anything costs. */
function costText(instance: InstanceRecord, at: number): string {
  const currency = currencyOf(instance);
  return currency === undefined ? '' : money(costSoFar(instance, at), currency);
}

function currencyOf({ currency, usage }: InstanceRecord): string | undefined {
  return currency ?? usage?.currency ?? undefined;
}

/**
 * One instance. The signals see to it that a change of another one does not paint it again, and that time changes two
 * texts of it. The roles say what the elements are, which are laid out as a grid.
 */
function Row(props: { record: Signal<InstanceRecord>; list: LiveList; onActions: (id: string) => void }) {
  const { record, list, onActions } = props;
  const instance = record.value;
  const cost = useComputed(() => costText(record.value, roughly.value));
  const isChosen = useComputed(() => list.chosen.value.has(record.value.id));
  const since = useComputed(() => age(roughly.value - Date.parse(record.value.created_at)));
  const { id, price_per_hour: price, warnings, simulated, node } = instance;
  const currency = currencyOf(instance);
  return (
    <tr role="row">
      {mayWrite.value && (
        <td role="cell" class="choose">
          <input
            type="checkbox"
            aria-label={`Choose ${titleOf(instance)}`}
            checked={isChosen.value}
            onChange={(event) => list.choose([id], event.currentTarget.checked)}
          />
        </td>
      )}
      <th scope="row" role="rowheader">
        <Link to={`/dashboard/instances/${id}`}>{titleOf(instance)}</Link>
        <span class="soft block">{id}</span>
      </th>
      <td role="cell" data-label="State">
        <State instance={instance} />{' '}
        {warnings.length > 0 && (
          <span class="chip">{warnings.length === 1 ? '1 warning' : `${warnings.length} warnings`}</span>
        )}
      </td>
      <td role="cell" data-label="GPUs">
        <span class={node === null ? 'soft' : undefined}>{gpus(instance)}</span>{' '}
        {simulated && <span class="chip">simulated</span>}
      </td>
      <td role="cell" data-label="Cost" class="number">
        {currency === undefined ? <span class="soft">–</span> : cost}
        {currency !== undefined && price !== null && <span class="soft"> · {priceText(price, currency)} / h</span>}
      </td>
      <td role="cell" data-label="Age" class="number">
        {since}
      </td>
      {mayWrite.value && (
        <td role="cell" class="action">
          <button
            type="button"
            class="quiet"
            aria-label={`Actions for ${titleOf(instance)}`}
            aria-haspopup="dialog"
            onClick={() => onActions(id)}
          >
            ⋯
          </button>
        </td>
      )}
    </tr>
  );
}

function Summary({ list }: { list: LiveList }) {
  const { running, perHour, waiting } = list.summary.value;
  return (
    <p>
      {running} running{perHour !== '' && ` at ${perHour} an hour`}, {waiting} waiting, in <code>{tenant.value}</code>
    </p>
  );
}

const COLUMNS: readonly { by: Column; title: string }[] = [
  { by: 'name', title: 'Name' },
  { by: 'state', title: 'State' },
  { by: 'gpus', title: 'GPUs' },
  { by: 'cost', title: 'Cost' },
  { by: 'age', title: 'Age' },
];

/** The names of the columns, by which the list can be sorted. */
function Head({ list, ids }: { list: LiveList; ids: readonly string[] }) {
  const wish = list.wish.value;
  const isAll = ids.length > 0 && ids.every((id) => list.chosen.value.has(id));
  return (
    <thead role="rowgroup">
      <tr role="row">
        {mayWrite.value && (
          <th scope="col" role="columnheader" class="choose">
            <input
              type="checkbox"
              aria-label="Choose all that are shown"
              checked={isAll}
              onChange={(event) => list.choose(ids, event.currentTarget.checked)}
            />
          </th>
        )}
        {COLUMNS.map(({ by, title }) => (
          <th
            scope="col"
            role="columnheader"
            key={by}
            aria-sort={wish.by === by ? (wish.isDown ? 'descending' : 'ascending') : 'none'}
          >
            <button
              type="button"
              class="quiet"
              onClick={() => list.look({ ...wish, by, isDown: wish.by === by && !wish.isDown })}
            >
              {title}
            </button>
          </th>
        ))}
        {mayWrite.value && (
          <th scope="col" role="columnheader">
            <span class="hidden">Actions</span>
          </th>
        )}
      </tr>
    </thead>
  );
}

function Rows({ list, ids }: { list: LiveList; ids: readonly string[] }) {
  const [acting, setActing] = useState<string>();
  const record = acting === undefined ? undefined : list.record(acting);
  return (
    <>
      <div class="tools">
        <input
          type="search"
          aria-label="Filter instances"
          placeholder="Name, state, GPU, image or node"
          value={list.wish.value.words}
          onInput={(event) => list.look({ ...list.wish.value, words: event.currentTarget.value })}
        />
        <select
          class="narrow-only"
          aria-label="Sort by"
          value={`${list.wish.value.by} ${list.wish.value.isDown}`}
          onChange={(event) => {
            const [by, isDown] = event.currentTarget.value.split(' ') as [Column, string];
            list.look({ ...list.wish.value, by, isDown: isDown === 'true' });
          }}
        >
          {COLUMNS.flatMap(({ by, title }) =>
            [false, true].map((isDown) => (
              <option key={`${by} ${isDown}`} value={`${by} ${isDown}`}>
                {title} {isDown ? '↓' : '↑'}
              </option>
            )),
          )}
        </select>
        <Bulk chosen={list.chosenRecords()} clear={() => list.choose([...list.chosen.value], false)} />
      </div>
      <div class="card flush">
        <table class={mayWrite.value ? 'list can-act' : 'list'} role="table">
          <caption class="hidden">Instances</caption>
          <Head list={list} ids={ids} />
          <tbody role="rowgroup">
            {ids.map((id) => {
              const one = list.record(id);
              return one === undefined ? null : <Row key={id} record={one} list={list} onActions={setActing} />;
            })}
          </tbody>
        </table>
        {ids.length === 0 && <p class="empty">No instance has these words.</p>}
      </div>
      {record !== undefined && (
        <Dialog id="row" title={titleOf(record.value)} onClose={() => setActing(undefined)}>
          <p>
            <State instance={record.value} />
          </p>
          <Actions instance={record.value} />
        </Dialog>
      )}
    </>
  );
}

/** All instances of the tenant, live. */
export function InstancesView() {
  const list = useMemo(() => new LiveList(), []);
  const trouble = useFollow('/instances', list.add);
  const ids = list.ids.value;
  return (
    <section aria-labelledby="instances-title">
      <div class="title">
        <div>
          <h1 id="instances-title">Instances</h1>
          {ids !== undefined && <Summary list={list} />}
        </div>
        <Link class="button primary" to="/dashboard/rent">
          Rent a GPU
        </Link>
      </div>
      <Alert text={trouble} />
      {ids !== undefined && list.size === 0 && (
        <div class="card flush">
          <Empty title="No instances yet">
            <p>
              An instance is a machine with GPUs of its own: rent one, log in by SSH, and give it back when you are
              done. You pay while its container runs.
            </p>
            <p>
              <Link to="/dashboard/rent">See what is free</Link>, or use a key: <code>POST /api/v1/instances</code>.
            </p>
          </Empty>
        </div>
      )}
      {ids !== undefined && list.size > 0 && <Rows list={list} ids={ids} />}
    </section>
  );
}
