import type { InstanceRecord } from '../../../wire/records.ts';

const PARTS = [
  { to: 'claimed', name: 'Queued' },
  { to: 'scheduled', name: 'Scheduled' },
  { to: 'pulled', name: 'Image pulled' },
  { to: 'started', name: 'Container started' },
  { to: 'ready', name: 'SSH ready' },
] as const;

interface Part {
  /** Its colour. */
  at: number;
  name: string;
  ms: number;
  isOpen: boolean;
}

/** Where the time of the start went until now. The time of a stage that has no mark counts to the next one. */
export function partsOf({ stages, created_at: created, usage }: InstanceRecord, until: number): Part[] {
  const found: Part[] = [];
  // An instance with starts that have ended was accepted long before this one began.
  const isFirst = usage === null;
  let last = Date.parse((isFirst ? stages.accepted : stages.claimed) ?? created);
  let next: Omit<Part, 'ms' | 'isOpen'> | undefined;
  for (const [at, { to, name }] of PARTS.entries()) {
    if (to === 'claimed' && !isFirst) continue;
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
