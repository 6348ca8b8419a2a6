import { useEffect, useState } from 'preact/hooks';
import type { EventListRecord, InstanceRecord } from '../../../wire/records.ts';
import { callApi } from '../calls/call.ts';
import { Alert } from '../parts/controls.tsx';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import { sameEvents } from '../same/same.ts';
import { attempt, tenant } from '../state.ts';

/** What happened to the instance. Read again when its state or reason changes. */
export function Events({ instance: { id, state, reason } }: { instance: InstanceRecord }) {
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
  return (
    <section class="card" aria-labelledby="events-title">
      <h2 id="events-title">What happened</h2>
      <Alert text={refusal} />
      <ol class="events">
        {list?.data.toReversed().map(({ at, type, reason, message, count }) => (
          <li key={`${at} ${reason} ${message}`} class={type}>
            <time dateTime={at}>{new Date(at).toLocaleTimeString()}</time>
            <span>
              <strong>{reason}</strong> {message}
              {count > 1 && <span class="soft"> · {count} times</span>}
            </span>
          </li>
        ))}
      </ol>
      {list?.data.length === 0 && <p class="soft">Nothing yet.</p>}
      <SameElsewhere same={sameEvents(tenant.value, id)} />
    </section>
  );
}
