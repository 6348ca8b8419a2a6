import type { InstanceRecord } from '../../../http/schemas/instance.ts';
import { duration } from '../parts/words.ts';
import { now } from '../state.ts';

const PARTS = [
  { from: 'accepted', to: 'claimed', name: 'Waited for a place' },
  { from: 'claimed', to: 'scheduled', name: 'Got its node' },
  { from: 'scheduled', to: 'pulled', name: 'Fetched the image' },
  { from: 'pulled', to: 'started', name: 'Started the container' },
  { from: 'started', to: 'ready', name: 'Opened the login' },
] as const;

interface Part {
  name: string;
  ms: number;
  isOpen: boolean;
}

/** Where the time of the start went until now. A stage that was skipped has no part. */
function partsOf({ stages, created_at }: InstanceRecord, at: number): Part[] {
  const found: Part[] = [];
  let last = stages.accepted ?? created_at;
  for (const { to, name } of PARTS) {
    const end = stages[to];
    if (end === undefined) {
      const isOver = stages.stopped !== undefined || stages.ready !== undefined;
      if (!isOver) found.push({ name, ms: Math.max(0, at - Date.parse(last)), isOpen: true });
      return found;
    }
    found.push({ name, ms: Math.max(0, Date.parse(end) - Date.parse(last)), isOpen: false });
    last = end;
  }
  return found;
}

/** The bar of a start: how long each stage took. Drawn, and as a list for those who cannot see it. */
export function Stages({ instance }: { instance: InstanceRecord }) {
  const waits = instance.stages.ready === undefined && instance.stages.stopped === undefined;
  const parts = partsOf(instance, waits ? now.value : 0);
  const total = parts.reduce((sum, { ms }) => sum + ms, 0);
  return (
    <div class="stages">
      <div class="bar-of-stages" aria-hidden="true">
        {parts.map(({ name, ms, isOpen }, at) => (
          <i key={name} class={`part-${at}${isOpen ? ' open' : ''}`} style={{ flexGrow: Math.max(ms, total / 60) }} />
        ))}
      </div>
      <ol>
        {parts.map(({ name, ms, isOpen }, at) => (
          <li key={name}>
            <i class={`dot part-${at}`} aria-hidden="true" />
            {name} <span class="soft">{isOpen ? `${duration(ms)} so far` : duration(ms)}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}
