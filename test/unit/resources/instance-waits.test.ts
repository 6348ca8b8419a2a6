import { expect, test } from 'vitest';
import { decisionOf } from '../../../src/http/features/instances/claim-waiter.ts';
import { READY_REASONS, type ReadyReason } from '../../../src/resources/instances/instance-state.ts';
import { gpuInstance } from '../../support/inventory-world.ts';

/** What the controller waits for by itself: something comes, and the instance starts. */
const STARTS_BY_ITSELF: readonly ReadyReason[] = [
  'WaitingForOffer',
  'TemplateNotFound',
  'TemplateTooLarge',
  'NetworkOpen',
];

test.each(STARTS_BY_ITSELF)('%s is not failed: the instance starts by itself', (reason) => {
  expect(READY_REASONS[reason].state).toBe('pending');
  expect(READY_REASONS[reason].help).toMatch(/starts when|says what is open/);
});

test.each(['WaitingForOffer', 'TemplateNotFound', 'TemplateTooLarge'])(
  'over HTTP %s is refused, also for a client that queues',
  (reason) => {
    for (const onNoCapacity of ['Queue', 'Fail'] as const) {
      const condition = {
        type: 'Ready',
        status: 'False',
        reason,
        message: '',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      };
      const instance = gpuInstance('one', { onNoCapacity }, { conditions: [{ ...condition, status: 'False' }] });
      expect(decisionOf(instance)).toBe('refused');
    }
  },
);
