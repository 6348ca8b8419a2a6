import { expect, it } from 'vitest';
import { followHistory } from '../../../src/http/features/events/follow.ts';
import { SentMarks } from '../../../src/http/features/events/marks.ts';
import type { StreamEvent } from '../../../src/http/interface/events/event-stream.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import { fold } from '../../../src/resources/history-fold.ts';
import { type InstanceHistorySpec, MAX_ENTRIES } from '../../../src/resources/instance-history.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { gpuInstance } from '../../support/inventory-world.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const at = (seconds: number): string => new Date(START + seconds * 1000).toISOString().replace('.000Z', 'Z');

function waiting(reason: string, message = ''): GpuInstance {
  const ready = { type: 'Ready', status: 'False', reason, message, lastTransitionTime: at(0) } as const;
  return gpuInstance('one', {}, { incarnation: 1, stages: { accepted: at(0) }, conditions: [ready] });
}

/** A replica that follows the history for one client, from where the instance stands. */
function follow(
  instance: GpuInstance | undefined,
  { lastId, seconds = 0 }: { lastId?: string; seconds?: number } = {},
) {
  const cache = new Cache<GpuInstance>({ onListenerError: (error) => expect(error).toBeUndefined() });
  cache.replace(instance === undefined ? [] : [instance], '1');
  const clock = fakeClock();
  clock.jumpWall(seconds * 1000);
  const events: StreamEvent[] = [];
  let ends = 0;
  const empty: InstanceHistorySpec = { instance: 'one', instanceUid: 'uid-one', entries: [], dropped: 0 };
  const history = instance === undefined ? empty : fold(undefined, instance, { gone: false, now: clock.now() });
  const namespace = instance?.metadata.namespace ?? 'default';
  const unfollow = followHistory(
    { instances: cache.store, clock, send: (event) => events.push(event), end: () => (ends += 1) },
    { namespace, history, instance, wasCached: instance !== undefined, lastId },
  );
  const told = (): string[] =>
    events.map(({ type, data }) => {
      const { reason, count } = JSON.parse(data) as { reason: string; count?: number };
      return type === 'end' ? 'end' : `${reason} ${count}`;
    });
  return { cache, clock, events, told, unfollow, ends: () => ends };
}

it('tells what has happened, then what happens, then the end', () => {
  const { cache, told, ends, events } = follow(waiting('WaitingForCapacity'));
  expect(told()).toEqual(['Accepted 1', 'WaitingForCapacity 1']);
  cache.replace([waiting('PullingImage')], '2');
  cache.replace([waiting('WaitingForCapacity', 'again')], '3');
  expect(told().slice(2)).toEqual(['PullingImage 1', 'WaitingForCapacity 2']);
  cache.replace([], '4');
  expect(told().slice(4)).toEqual(['Deleted 1', 'end']);
  expect(ends()).toBe(1);
  expect(new Set(events.slice(0, -1).map(({ id }) => id)).size).toBe(5);
  cache.replace([waiting('Starting')], '5');
  expect(told()).toHaveLength(6);
});

it('tells an instance of the same name later nothing of the earlier, and ends for the earlier', () => {
  const { cache, told } = follow(waiting('Starting'));
  const other = { ...waiting('Starting'), metadata: { ...waiting('Starting').metadata, uid: 'another' } };
  cache.replace([other], '2');
  expect(told().slice(2)).toEqual(['Deleted 1', 'end']);
});

it('goes on at another replica, which has seen the states at other times, without what the client has', () => {
  const first = follow(waiting('WaitingForCapacity'), { seconds: 5 });
  const lastId = first.events.at(-1)?.id ?? '';
  for (const seconds of [3, 5, 8]) {
    const second = follow(waiting('WaitingForCapacity'), { lastId, seconds });
    expect(second.told()).toEqual([]);
    second.cache.replace([waiting('CrashLoop')], '2');
    expect(second.told()).toEqual(['CrashLoop 1']);
  }
});

it('loses nothing that another replica saw earlier than the last event of the client', () => {
  const first = follow(waiting('WaitingForCapacity'), { seconds: 5 });
  const second = follow(waiting('PullingImage'), { seconds: 4, lastId: first.events.at(-1)?.id ?? '' });
  expect(second.told()).toEqual(['PullingImage 1']);
});

it.each(['', 'x', '1.x', '12345', `9999999999999.${'a'.repeat(80)}`])('tells everything after the id %j', (lastId) => {
  expect(follow(waiting('Starting'), { lastId }).told()).toEqual(['Accepted 1', 'Starting 1']);
});

it('ends at once where the instance is gone, also when nothing says so yet', () => {
  const { told, ends } = follow(undefined);
  expect([told(), ends()]).toEqual([['Deleted 1', 'end'], 1]);
});

it('sends ids that fit into what is read of a header, and no event twice in a full history', () => {
  const marks = new SentMarks();
  const history: InstanceHistorySpec = { instance: 'one', instanceUid: 'uid-one', entries: [], dropped: 0 };
  for (let index = 0; index < 3 * MAX_ENTRIES; index += 1) {
    const entry = { at: at(index), type: 'Normal', reason: `R${index}`, message: '', count: 1, start: 1 } as const;
    history.entries = [...history.entries, entry].slice(-MAX_ENTRIES);
    const [found, ...others] = marks.take(history);
    expect([found?.entry, others]).toEqual([entry, []]);
    expect(found?.id.length).toBeLessThanOrEqual(100);
    const again = new SentMarks();
    again.resume(found?.id, history);
    // More than the marks of an id within half a minute come twice.
    expect(again.take(history).length).toBeLessThanOrEqual(30 - 14);
  }
});
