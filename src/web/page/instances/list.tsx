import type { Signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { InstanceRecord } from '../../../http/schemas/instance.ts';
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

function Cost({ instance }: { instance: InstanceRecord }) {
  const { price_per_hour: price, currency, usage } = instance;
  const code = currency ?? usage?.currency;
  if (!code) return <span class="soft">not yet</span>;
  return (
    <>
      {money(costSoFar(instance, roughly.value), code)}
      {price !== null && <span class="soft"> · {money(price, code)} / h</span>}
    </>
  );
}

function Age({ at }: { at: string }) {
  return <>{age(roughly.value - Date.parse(at))}</>;
}

/** One instance. The signals see to it that a change of another one does not paint it again. */
function Row({ record }: { record: Signal<InstanceRecord> }) {
  const instance = record.value;
  return (
    <tr>
      <th scope="row">
        <Link to={`/dashboard/instances/${instance.id}`}>{titleOf(instance)}</Link>
        <span class="soft block">{instance.id}</span>
      </th>
      <td data-label="State">
        <State instance={instance} />
        {instance.warnings.length > 0 && <span class="chip warn">{instance.warnings.length} to know</span>}
      </td>
      <td data-label="GPUs">
        {gpus(instance)}
        {instance.simulated && <span class="chip">simulated</span>}
      </td>
      <td data-label="Cost" class="number">
        <Cost instance={instance} />
      </td>
      <td data-label="Age" class="number">
        <Age at={instance.created_at} />
      </td>
    </tr>
  );
}

function Summary({ list }: { list: LiveList }) {
  const running = list.sum(({ state }) => state === 'running');
  const waiting = list.sum(({ state }) => state === 'pending' || state === 'interrupted');
  return (
    <p>
      {running.count} running at {money(running.perHour, running.currency)} an hour, {waiting.count} waiting, in{' '}
      <code>{tenant.value}</code>
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
            <table class="list">
              <caption class="hidden">Instances</caption>
              <thead>
                <tr>
                  {['Name', 'State', 'GPUs', 'Cost', 'Age'].map((name) => (
                    <th scope="col" key={name}>
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
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
