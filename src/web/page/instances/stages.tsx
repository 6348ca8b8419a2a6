import type { InstanceRecord } from '../../../wire/records.ts';
import { duration } from '../parts/words.ts';
import { partsOf } from './start-parts.ts';
import { now } from '../state.ts';

/** A start is seconds, and where they went is in their tenths. */
function taken(ms: number): string {
  return ms < 9950 ? `${(ms / 1000).toFixed(1)} s` : duration(ms);
}

/** The start: how long it took, and each of its stages. Drawn, and as a list for those who cannot see it. */
export function Startup({ instance }: { instance: InstanceRecord }) {
  const waits = instance.stages.ready === undefined && instance.stages.stopped === undefined;
  const parts = partsOf(instance, waits ? now.value : 0);
  const total = parts.reduce((sum, { ms }) => sum + ms, 0);
  // Of a start that has not begun there is nothing: the state says that it waits.
  if (parts.length === 0) return null;
  return (
    <section class="card stages" aria-labelledby="start-title">
      <h2 id="start-title">Startup: {waits ? `${duration(total)} so far` : taken(total)}</h2>
      <div class="bar-of-stages" aria-hidden="true">
        {parts.map(({ at, name, ms, isOpen }) => (
          <i key={name} class={`part-${at}${isOpen ? ' open' : ''}`} style={{ flexGrow: Math.max(ms, total / 60) }} />
        ))}
      </div>
      <ol>
        {parts.map(({ at, name, ms, isOpen }) => (
          <li key={name}>
            <i class={`dot part-${at}`} aria-hidden="true" />
            {name} <span class="soft">{isOpen ? `${duration(ms)} so far` : taken(ms)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
