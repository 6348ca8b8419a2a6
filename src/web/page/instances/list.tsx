import { type Signal, useComputed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { InstanceRecord } from '../../../wire/records.ts';
import { Alert, Empty, Link } from '../parts/controls.tsx';
import { useFollow } from '../parts/use-follow.ts';
import { age, costSoFar, gpus, money, STATES, titleOf } from '../parts/words.ts';
import { roughly, tenant } from '../state.ts';
import { LiveList } from './live-list.ts';

export function State({ instance }: { instance: Pick<InstanceRecord, 'state' | 'place_in_line'> }) {
  const { state, place_in_line: place } = instance;
  return (
    <span class={`state ${state}`}>
      {STATES[state]}
      {place !== null && ` · ${place} in line`}
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
function Row({ record }: { record: Signal<InstanceRecord> }) {
  const instance = record.value;
  const cost = useComputed(() => costText(record.value, roughly.value));
  const since = useComputed(() => age(roughly.value - Date.parse(record.value.created_at)));
  const { id, price_per_hour: price, warnings, simulated } = instance;
  const currency = currencyOf(instance);
  return (
    <tr role="row">
      <th scope="row" role="rowheader">
        <Link to={`/dashboard/instances/${id}`}>{titleOf(instance)}</Link>
        <span class="soft block">{id}</span>
      </th>
      <td role="cell" data-label="State">
        <State instance={instance} />
        {warnings.length > 0 && <span class="chip warn">{warnings.length} to know</span>}
      </td>
      <td role="cell" data-label="GPUs">
        {gpus(instance)} {simulated && <span class="chip">simulated</span>}
      </td>
      <td role="cell" data-label="Cost" class="number">
        {currency === undefined ? <span class="soft">not yet</span> : cost}
        {currency !== undefined && price !== null && <span class="soft"> · {money(price, currency)} / h</span>}
      </td>
      <td role="cell" data-label="Age" class="number">
        {since}
      </td>
    </tr>
  );
}

function Summary({ list }: { list: LiveList }) {
  const { running, perHour, currency, waiting } = list.summary.value;
  return (
    <p>
      {running} running at {money(perHour, currency)} an hour, {waiting} waiting, in <code>{tenant.value}</code>
    </p>
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
      {ids !== undefined && (
        <div class="card flush">
          {ids.length === 0 ? (
            <Empty title="No instances yet">
              <p>
                An instance is a machine with GPUs of its own: rent one, log in by SSH, and give it back when you are
                done. You pay from the first login until then.
              </p>
              <p>
                <Link to="/dashboard/rent">See what is free</Link>, or use a key: <code>POST /api/v1/instances</code>.
              </p>
            </Empty>
          ) : (
            <table class="list" role="table">
              <caption class="hidden">Instances</caption>
              <thead role="rowgroup">
                <tr role="row">
                  {['Name', 'State', 'GPUs', 'Cost', 'Age'].map((name) => (
                    <th scope="col" role="columnheader" key={name}>
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody role="rowgroup">
                {ids.map((id) => {
                  const record = list.record(id);
                  return record === undefined ? null : <Row key={id} record={record} />;
                })}
              </tbody>
            </table>
          )}
        </div>
      )}
    </section>
  );
}
