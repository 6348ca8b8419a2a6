import { useEffect, useState } from 'preact/hooks';
import type { EventListRecord, InstanceRecord } from '../../../wire/records.ts';
import { callApi } from '../calls/call.ts';
import { Alert } from '../parts/controls.tsx';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import { sameEvents } from '../same/same.ts';
import { attempt, tenant } from '../state.ts';

function dayOf(at: string): string {
  return new Date(at).toLocaleDateString(undefined, { weekday: 'short', day: 'numeric', month: 'short' });
}

/** The life of the instance, newest first, by days. Read again when its state or reason changes. */
export function History({ instance: { id, state, reason } }: { instance: InstanceRecord }) {
  const [list, setList] = useState<EventListRecord>();
  const [refusal, setRefusal] = useState('');
  useEffect(() => {
    let isLeft = false;
    void attempt(async () => {
      const read = await callApi<EventListRecord>(tenant.value, 'GET', `/instances/${encodeURIComponent(id)}/events`);
      if (!isLeft) setList(read);
    }, setRefusal);
    return () => {
      isLeft = true;
    };
  }, [id, state, reason]);
  const days = [...Map.groupBy(list?.data.toReversed() ?? [], ({ at }) => dayOf(at))];
  return (
    <section class="card" aria-labelledby="events-title">
      <h2 id="events-title">History</h2>
      <Alert text={refusal} />
      {days.map(([day, events]) => (
        <div key={day}>
          <h3>{day}</h3>
          <ol class="events">
            {events.map(({ at, type, reason: why, message, count, start }) => (
              <li key={`${at} ${why} ${message}`} class={type}>
                <time dateTime={at}>{new Date(at).toLocaleTimeString()}</time>
                <span>
                  <strong>{why}</strong> {message}
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
