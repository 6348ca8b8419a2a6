import type { InstanceRecord } from '../../../wire/records.ts';
import { duration } from '../parts/words.ts';
import { now } from '../state.ts';

const PARTS = [
  { to: 'claimed', name: 'Waited for a place' },
  { to: 'scheduled', name: 'Got its node' },
  { to: 'pulled', name: 'Fetched the image' },
  { to: 'started', name: 'Started the container' },
  { to: 'ready', name: 'Opened the login' },
] as const;

interface Part {
  /** Its colour. */
  at: number;
  name: string;
  ms: number;
  isOpen: boolean;
}

/** Where the time of the start went until now. The time of a stage that has no mark counts to the next one. */
function partsOf({ stages, created_at: created }: InstanceRecord, until: number): Part[] {
  const found: Part[] = [];
  let last = Date.parse(stages.accepted ?? created);
  let next: Omit<Part, 'ms' | 'isOpen'> | undefined;
  for (const [at, { to, name }] of PARTS.entries()) {
    const end = stages[to];
    if (end === undefined) {
      next ??= { at, name };
      continue;
    }
    found.push({ at, name, ms: Math.max(0, Date.parse(end) - last), isOpen: false });
    last = Date.parse(end);
    next = undefined;
  }
  if (next !== undefined && stages.stopped === undefined) {
    found.push({ ...next, ms: Math.max(0, until - last), isOpen: true });
  }
  return found;
}

/** A start is seconds, and where they went is in their tenths. */
function taken(ms: number): string {
  return ms < 9950 ? `${(ms / 1000).toFixed(1)} s` : duration(ms);
}

/** The bar of a start: how long each stage took. Drawn, and as a list for those who cannot see it. */
export function Stages({ instance }: { instance: InstanceRecord }) {
  const waits = instance.stages.ready === undefined && instance.stages.stopped === undefined;
  const parts = partsOf(instance, waits ? now.value : 0);
  const total = parts.reduce((sum, { ms }) => sum + ms, 0);
  return (
    <div class="stages">
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
    </div>
  );
}
