import type { InstanceRecord } from '../../../wire/records.ts';
import { STATES, titleOf } from '../parts/words.ts';

/** Something that happened to an instance by itself. */
export interface Happening {
  id: string;
  title: string;
  says: string;
  /** Milliseconds since the epoch. */
  at: number;
}

type Told = Pick<InstanceRecord, 'id' | 'name' | 'state' | 'reason' | 'message' | 'stages' | 'usage' | 'created_at'>;

/** What stopped an instance that its owner did not stop. */
const ENDINGS: ReadonlySet<InstanceRecord['reason']> = new Set(['Expired', 'Idle', 'BudgetSpent', 'Completed']);

function wordsOf({ state, reason, message, usage }: Told): string | undefined {
  if (state === 'running' && usage !== null) return 'Runs again';
  const isEnded = state === 'interrupted' || state === 'failed' || (state === 'stopped' && ENDINGS.has(reason));
  return isEnded ? [STATES[state], message].filter((text) => text !== '').join(': ') : undefined;
}

/** What happened to instances while nobody asked for it, the last first. */
export function happeningsOf(instances: readonly Told[]): Happening[] {
  return instances
    .flatMap((instance): Happening[] => {
      const says = wordsOf(instance);
      if (says === undefined) return [];
      const times = [instance.created_at, ...Object.values(instance.stages)].map((time) => Date.parse(time));
      return [{ id: instance.id, title: titleOf(instance), says, at: Math.max(...times) }];
    })
    .toSorted((a, b) => b.at - a.at);
}
