import { useEffect, useState } from 'preact/hooks';
import type { EventListRecord, InstanceRecord } from '../../../wire/records.ts';
import { callApi } from '../calls/call.ts';
import { Alert } from '../parts/controls.tsx';
import { duration, localTimes, reasonWords } from '../parts/words.ts';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import { sameEvents } from '../same/same.ts';
import { attempt, now, roughly, tenant } from '../state.ts';
import { lifeOf } from './life.ts';

function dayOf(at: string): string {
  return new Date(at).toLocaleDateString(undefined, { weekday: 'short', day: 'numeric', month: 'short' });
}

/** Milliseconds until the controller has written how a start ended after which the next one began at once. */
const WRITTEN_MS = 20_000;

const LIFE_TITLES = { waits: 'Waiting or stopped', starts: 'Starting', runs: 'Running' } as const;

/** The whole life as one bar, and how long it ran, started and waited. */
function Life({ list, state }: { list: EventListRecord; state: InstanceRecord['state'] }) {
  const isRunning = state === 'running';
  const parts = lifeOf(list.data, roughly.value);
  const whole = parts.reduce((sum, { ms }) => sum + ms, 0);
  if (whole === 0) return null;
  const sums = Map.groupBy(parts, ({ kind }) => kind);
  return (
    <div class="life">
      <div class="bar-of-stages" aria-hidden="true">
        {parts.map(({ kind, ms }, at) => (
          <i key={at} class={kind} style={{ flexGrow: Math.max(ms, whole / 200) }} />
        ))}
      </div>
      <ul>
        {[...sums].map(([kind, all]) => (
          <li key={kind}>
            <i class={`dot ${kind}`} aria-hidden="true" />
            {LIFE_TITLES[kind]}{' '}
            <span class="soft">
              {duration(all.reduce((sum, { ms }) => sum + ms, 0))}
              {kind === 'runs' && isRunning && ' so far'}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The life of the instance, newest first, by days. Read again when its state or reason changes, and a while after. */
export function History({ instance: { id, state, reason } }: { instance: InstanceRecord }) {
  const [list, setList] = useState<EventListRecord>();
  const [refusal, setRefusal] = useState('');
  useEffect(() => {
    let isLeft = false;
    const read = (): void =>
      void attempt(async () => {
        const found = await callApi<EventListRecord>(
          tenant.value,
          'GET',
          `/instances/${encodeURIComponent(id)}/events`,
        );
        if (!isLeft) setList(found);
      }, setRefusal);
    read();
    const again = setTimeout(read, WRITTEN_MS);
    return () => {
      isLeft = true;
      clearTimeout(again);
    };
  }, [id, state, reason]);
  const days = [...Map.groupBy(list?.data.toReversed() ?? [], ({ at }) => dayOf(at))];
  return (
    <section class="card" aria-labelledby="events-title">
      <h2 id="events-title">History</h2>
      <Alert text={refusal} />
      {list !== undefined && <Life list={list} state={state} />}
      {days.map(([day, events]) => (
        <div key={day} class="day">
          <h3>{day}</h3>
          <ol class="events">
            {events.map(({ at, type, reason: why, message, count, start }) => (
              <li key={`${at} ${why} ${message}`} class={type}>
                <time dateTime={at}>{new Date(at).toLocaleTimeString()}</time>
                <span>
                  <strong title={why}>{reasonWords(why)}</strong> {localTimes(message, now.peek())}
                  {count > 1 && <span class="soft"> · {count} times</span>}
                  {start > 1 && <span class="soft"> · start {start}</span>}
                </span>
              </li>
            ))}
          </ol>
        </div>
      ))}
      {list?.data.length === 0 && <p class="soft">Nothing yet.</p>}
      <SameElsewhere same={sameEvents(tenant.value, id)} />
    </section>
  );
}
