import { expect, test } from 'vitest';
import { findCondition, setCondition } from '../../../src/kube/conditions.ts';

const NOON = Date.UTC(2026, 0, 1, 12);
const READY = { type: 'Ready', status: 'True', reason: 'Running', message: 'It runs.' } as const;

test('a new condition is added behind the others with the time of now', () => {
  const first = setCondition(undefined, READY, { observedGeneration: 3, now: NOON + 456 });
  expect(first).toEqual([{ ...READY, observedGeneration: 3, lastTransitionTime: '2026-01-01T12:00:00Z' }]);
  const second = setCondition(first, { ...READY, type: 'Claimed' }, { observedGeneration: 3, now: NOON });
  expect(second.map(({ type }) => type)).toEqual(['Ready', 'Claimed']);
});

test('the time moves only when the status flips', () => {
  const first = setCondition([], READY, { observedGeneration: 1, now: NOON });
  const same = setCondition(first, { ...READY, message: 'Still.' }, { observedGeneration: 2, now: NOON + 60_000 });
  expect(same).toEqual([{ ...first[0], message: 'Still.', observedGeneration: 2 }]);
  const flipped = setCondition(same, { ...READY, status: 'False' }, { observedGeneration: 2, now: NOON + 60_000 });
  expect(findCondition(flipped, 'Ready')?.lastTransitionTime).toBe('2026-01-01T12:01:00Z');
});

test('the list given is not changed', () => {
  const first = Object.freeze(setCondition([], READY, { observedGeneration: 1, now: NOON }));
  setCondition(first, { ...READY, status: 'False' }, { observedGeneration: 1, now: NOON });
  expect(first[0]?.status).toBe('True');
});

test('a message is cut at the limit of the API', () => {
  const [condition] = setCondition([], { ...READY, message: 'x'.repeat(40_000) }, { observedGeneration: 1, now: NOON });
  expect(condition?.message).toHaveLength(32_768);
});

test('a condition is found by its type', () => {
  const conditions = setCondition([], READY, { observedGeneration: 1, now: NOON });
  expect(findCondition(undefined, 'Ready')).toBeUndefined();
  expect(findCondition(conditions, 'Claimed')).toBeUndefined();
  expect(findCondition(conditions, 'Ready')?.status).toBe('True');
});
