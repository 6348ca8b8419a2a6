import { expect, it } from 'vitest';
import { happeningsOf } from '../../../src/web/page/shell/happenings.ts';

type Told = Parameters<typeof happeningsOf>[0][number];

function told(id: string, changes: Partial<Told>): Told {
  const created = '2026-11-01T08:00:00Z';
  const plain = { id, name: null, state: 'running', reason: 'Running', message: '', usage: null } as const;
  return { ...plain, created_at: created, stages: { accepted: created }, ...changes };
}

const USED = { gpu_seconds: 60, cost: '0.10', currency: 'USD' };

it('tells of what its owner did not ask for, the last first', () => {
  const found = happeningsOf([
    told('i-first', { state: 'failed', reason: 'ContainerFailed', message: 'The program exited with code 3.' }),
    told('i-new', {}),
    told('i-back', { usage: USED, stages: { ready: '2026-11-01T10:00:00Z' } }),
    told('i-lost', {
      name: 'training',
      state: 'interrupted',
      reason: 'Preempted',
      stages: { stopped: '2026-11-01T09:00:00Z' },
    }),
    told('i-idle', { state: 'stopped', reason: 'Idle', stages: { stopped: '2026-11-01T08:30:00Z' } }),
    told('i-mine', { state: 'stopped', reason: 'Stopped', stages: { stopped: '2026-11-01T11:00:00Z' } }),
  ]);
  expect(found.map(({ title, says }) => [title, says])).toEqual([
    ['i-back', 'Runs again'],
    ['training', 'Interrupted, comes back'],
    ['i-idle', 'Stopped'],
    ['i-first', 'Failed: The program exited with code 3.'],
  ]);
});
