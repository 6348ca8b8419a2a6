import { costSoFar } from '../../../wire/cost-so-far.ts';
import type { InstanceRecord } from '../../../wire/records.ts';
import { STATES, titleOf } from '../parts/words.ts';

export type Column = 'name' | 'state' | 'gpus' | 'cost' | 'age';

/** Which instances a person looks for, and in which order. */
export interface ListWish {
  words: string;
  by: Column;
  isDown: boolean;
}

/** The newest first. */
export const NEWEST: ListWish = { words: '', by: 'age', isDown: false };

const KEYS: Readonly<Record<Column, (instance: InstanceRecord, now: number) => string | number>> = {
  name: (instance) => titleOf(instance).toLowerCase(),
  state: ({ state }) => STATES[state],
  gpus: ({ gpu_name: name, gpu_count: count }) => `${name ?? ''} ${String(count).padStart(4)}`,
  cost: costSoFar,
  age: ({ created_at: created }, now) => now - Date.parse(created),
};

function textOf(instance: InstanceRecord): string {
  const { id, state, gpu_name: gpu, template_image: image, node, label } = instance;
  return [titleOf(instance), id, STATES[state], gpu, image, node, label].join(' ').toLowerCase();
}

/** The instances that have all words, in order; of equal ones those stay first that were. @param now wall time in ms */
export function arranged(all: readonly InstanceRecord[], wish: ListWish, now: number): InstanceRecord[] {
  const words = wish.words.toLowerCase().split(/\s+/);
  const key = KEYS[wish.by];
  const found = all
    .filter((instance) => wish.words === '' || words.every((word) => textOf(instance).includes(word)))
    .map((instance) => ({ instance, key: key(instance, now) }));
  const sign = wish.isDown ? -1 : 1;
  return found.toSorted((a, b) => sign * (a.key < b.key ? -1 : Number(a.key > b.key))).map(({ instance }) => instance);
}
