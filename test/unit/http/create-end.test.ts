import { expect, test } from 'vitest';
import { endOf } from '../../../src/http/features/instances/create.ts';

const BOTH = [true, false];
const DECISIONS = ['granted', 'queued', 'refused', 'gone', 'timeout'] as const;
const ALL = DECISIONS.flatMap((decision) =>
  BOTH.flatMap((queues) =>
    BOTH.flatMap((hasKey) =>
      BOTH.flatMap((hasLeft) =>
        BOTH.flatMap((replayed) =>
          BOTH.flatMap((isBehind) =>
            BOTH.map((isComing) => ({ decision, queues, hasKey, hasLeft, replayed, isBehind, isComing })),
          ),
        ),
      ),
    ),
  ),
);

/** What the client gets: with a key; without one; and when it has left, or nothing is for it, without one. */
const ENDS: Record<string, [string, string, string]> = {
  'granted, queues': ['answer granted', 'confirm granted', 'timeout'],
  granted: ['answer granted', 'confirm granted', 'timeout'],
  'queued, queues': ['answer queued', 'confirm queued', 'timeout'],
  queued: ['answer queued', 'confirm queued', 'timeout'],
  // The record says that nothing is decided yet.
  'timeout, queues': ['answer queued', 'confirm queued', 'timeout'],
  timeout: ['timeout', 'timeout', 'timeout'],
  'refused, queues': ['refuse', 'refuse', 'refuse'],
  refused: ['refuse', 'refuse', 'refuse'],
  'gone, queues': ['deleted', 'deleted', 'deleted'],
  gone: ['deleted', 'deleted', 'deleted'],
};

test('every request ends in one way', () => {
  expect(ALL.length).toBe(320);
  for (const known of ALL) {
    const { decision, queues, hasKey, hasLeft, replayed, isBehind, isComing } = known;
    const [withKey, there, left] = ENDS[queues ? `${decision}, queues` : decision] ?? [];
    // Others end for it: it stays although its client has left.
    const isGone = hasLeft && !(isComing && there?.startsWith('confirm'));
    let expected = hasKey ? withKey : isGone ? left : there;
    // Another request with the key was refused, and took the instance along.
    if (expected === 'deleted' && replayed) expected = 'refuse';
    // One that has waited longer gets the place. With a key the client may ask again.
    if (expected === 'timeout' && isBehind && !hasKey) expected = 'refuse';
    expect(Object.values(endOf(known)).join(' '), JSON.stringify(known)).toBe(expected);
  }
});
