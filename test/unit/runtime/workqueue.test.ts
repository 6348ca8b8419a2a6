import fc from 'fast-check';
import { Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { createQueueMetrics } from '../../../src/runtime/queue-metrics.ts';
import { type Priority, WorkQueue } from '../../../src/runtime/workqueue.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';

function setup(): { clock: ReturnType<typeof fakeClock>; queue: WorkQueue } {
  const clock = fakeClock();
  return { clock, queue: new WorkQueue(clock) };
}

/** What `take` gives now, or `nothing` when it would wait. */
function takeNow(queue: WorkQueue): Promise<string | undefined> {
  return Promise.race([queue.take(), settle().then(() => 'nothing')]);
}

describe('as client-go queue_test.go has it', () => {
  test('a key added twice waits once', async () => {
    const { queue } = setup();
    queue.add('foo');
    queue.add('bar');
    queue.add('foo');
    expect(queue.size).toBe(2);
    expect([await queue.take(), await queue.take()]).toEqual(['foo', 'bar']);
    expect(queue.size).toBe(0);
  });

  test('a key added while it is worked on comes again when done, not before', async () => {
    const { queue } = setup();
    queue.add('foo');
    await queue.take();
    queue.add('foo');
    const next = queue.take();
    expect(await Promise.race([next, settle().then(() => 'nothing')])).toBe('nothing');
    queue.done('foo');
    expect(await next).toBe('foo');
    queue.done('foo');
    expect(queue.size).toBe(0);
  });

  test('shutdown ends the waiting workers, takes nothing more and gives nothing more', async () => {
    const { queue } = setup();
    const workers = [queue.take(), queue.take()];
    queue.shutDown();
    expect(await Promise.all(workers)).toEqual([undefined, undefined]);
    queue.add('after');
    queue.addAfter('after', 10);
    expect(await queue.take()).toBeUndefined();
  });

  test('a key added while worked on does not come after shutdown', async () => {
    const { queue } = setup();
    queue.add('foo');
    await queue.take();
    queue.add('foo');
    queue.shutDown();
    queue.done('foo');
    expect(await queue.take()).toBeUndefined();
  });
});

describe('a delay, as client-go delaying_queue_test.go has it', () => {
  test('ends when its time is there', async () => {
    const { clock, queue } = setup();
    queue.addAfter('foo', 50);
    await clock.advance(49);
    expect(queue.size).toBe(0);
    await clock.advance(1);
    expect(await queue.take()).toBe('foo');
  });

  test('of several the soonest counts, and the key comes once', async () => {
    const { clock, queue } = setup();
    queue.addAfter('foo', 1000);
    queue.addAfter('foo', 50);
    queue.addAfter('foo', 500);
    await clock.advance(50);
    expect(await queue.take()).toBe('foo');
    queue.done('foo');
    await clock.advance(2000);
    expect(queue.size).toBe(0);
  });

  test('that was set before a worker takes the key is forgotten', async () => {
    const { clock, queue } = setup();
    queue.addAfter('foo', 1000);
    queue.add('foo');
    await queue.take();
    queue.done('foo');
    expect(clock.pending).toBe(0);
  });

  test('that is set while the key is worked on stays', async () => {
    const { clock, queue } = setup();
    queue.add('foo');
    await queue.take();
    queue.addAfter('foo', 100);
    queue.done('foo');
    await clock.advance(100);
    expect(await queue.take()).toBe('foo');
  });

  test('longer than a timer can hold comes after a day instead of at once', async () => {
    const { clock, queue } = setup();
    queue.addAfter('foo', 90 * 24 * 3_600_000);
    await clock.advance(3_600_000);
    expect(queue.size).toBe(0);
    await clock.advance(23 * 3_600_000);
    expect(queue.size).toBe(1);
  });

  test('leaves no timer behind after shutdown', () => {
    const { clock, queue } = setup();
    queue.addAfter('foo', 50);
    queue.shutDown();
    expect(clock.pending).toBe(0);
  });
});

describe('low priority', () => {
  test('yields to normal keys', async () => {
    const { queue } = setup();
    queue.add('old', 'low');
    queue.add('new');
    expect([await queue.take(), await queue.take()]).toEqual(['new', 'old']);
  });

  test('a low key that is added as normal moves up and comes once', async () => {
    const { queue } = setup();
    queue.add('a', 'low');
    queue.add('b', 'low');
    queue.add('b');
    expect([await queue.take(), await queue.take()]).toEqual(['b', 'a']);
    expect(queue.size).toBe(0);
  });

  test('does not starve', async () => {
    const { queue } = setup();
    queue.add('patient', 'low');
    const taken: (string | undefined)[] = [];
    for (let index = 0; index < 10; index += 1) {
      queue.add(`new-${index}`);
      queue.add(`newer-${index}`);
      taken.push(await queue.take());
    }
    expect(taken).toContain('patient');
  });
});

describe.each<Priority>(['normal', 'low'])('the keys of many namespaces at %s priority', (priority) => {
  test('take turns, each in order: a thousand of one are before nobody else', async () => {
    const { queue } = setup();
    for (let index = 0; index < 1000; index += 1) queue.add(`hostile/${index}`, priority);
    for (const key of ['honest/1', 'honest/2', 'of-the-cluster', 'other/1']) queue.add(key, priority);
    const taken: (string | undefined)[] = [];
    for (let index = 0; index < 8; index += 1) taken.push(await queue.take());
    expect(taken).toEqual([
      'hostile/0',
      'honest/1',
      'of-the-cluster',
      'other/1',
      'hostile/1',
      'honest/2',
      'hostile/2',
      'hostile/3',
    ]);
    expect(queue.size).toBe(996);
  });

  test('are all given out, also when a namespace comes and goes', async () => {
    const { queue } = setup();
    const taken: (string | undefined)[] = [];
    for (let round = 0; round < 3; round += 1) {
      for (const key of ['a/1', 'b/1', 'a/2']) queue.add(key, priority);
      for (let index = 0; index < 3; index += 1) {
        const key = await queue.take();
        taken.push(key);
        queue.done(key ?? '');
      }
    }
    expect(taken).toEqual(Array.from({ length: 3 }, () => ['a/1', 'b/1', 'a/2']).flat());
    expect(queue.size).toBe(0);
  });
});

test('never loses a key, never gives one twice at a time, never gives one that was not added', async () => {
  const keys = fc.constantFrom('a/1', 'a/2', 'b/1', 'c');
  const step = fc.oneof(
    fc.record({ kind: fc.constant('add' as const), key: keys, priority: fc.constantFrom<Priority>('normal', 'low') }),
    fc.record({ kind: fc.constant('later' as const), key: keys, ms: fc.integer({ min: 0, max: 30 }) }),
    fc.record({ kind: fc.constant('take' as const) }),
    fc.record({ kind: fc.constant('done' as const), pick: fc.nat() }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 20 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { clock, queue } = setup();
      /** Keys that must still be given out: added since they were last taken. */
      const owed = new Set<string>();
      const working = new Set<string>();
      const due = new Map<string, number>();
      const fire = (): void => {
        for (const [key, at] of due) {
          if (at > clock.monotonic()) continue;
          owed.add(key);
          due.delete(key);
        }
      };
      const receive = (key: string | undefined): void => {
        if (key === undefined) throw new Error('the queue is not shut down');
        expect(working.has(key)).toBe(false);
        expect(owed.delete(key)).toBe(true);
        due.delete(key);
        working.add(key);
      };
      const ready = (): string[] => [...owed].filter((key) => !working.has(key));
      const takeReady = async (): Promise<void> => {
        expect(queue.size).toBe(ready().length);
        if (queue.size > 0) receive(await queue.take());
      };
      for (const one of steps) {
        if (one.kind === 'add') {
          queue.add(one.key, one.priority);
          owed.add(one.key);
        } else if (one.kind === 'later') {
          queue.addAfter(one.key, one.ms);
          due.set(one.key, Math.min(due.get(one.key) ?? Infinity, clock.monotonic() + one.ms));
          fire();
        } else if (one.kind === 'wait') {
          await clock.advance(one.ms);
          fire();
        } else if (one.kind === 'take') {
          await takeReady();
        } else {
          const key = [...working][one.pick % Math.max(1, working.size)];
          if (key === undefined) continue;
          working.delete(key);
          queue.done(key);
        }
      }
      await clock.advance(30);
      fire();
      for (const key of working) queue.done(key);
      working.clear();
      while (owed.size > 0) await takeReady();
      expect(await takeNow(queue)).toBe('nothing');
    }),
  );
});

test('metrics carry the names of client-go', async () => {
  const clock = fakeClock();
  const registry = new Registry();
  const queue = new WorkQueue(clock, createQueueMetrics(registry, clock)('gpuinstance'));
  queue.add('a');
  queue.add('b');
  queue.addAfter('c', 1000);
  await clock.advance(2_000);
  await queue.take();
  await clock.advance(5_000);
  const labels = '{name="gpuinstance",controller="gpuinstance"}';
  const text = await registry.metrics();
  expect(text).toContain(`workqueue_depth${labels} 2`);
  expect(text).toContain(`workqueue_adds_total${labels} 3`);
  expect(text).toContain(`workqueue_retries_total${labels} 1`);
  expect(text).toContain(`workqueue_unfinished_work_seconds${labels} 5`);
  expect(text).toContain(`workqueue_longest_running_processor_seconds${labels} 5`);
  expect(text).toContain(`workqueue_queue_duration_seconds_sum${labels} 2`);
  queue.done('a');
  expect(await registry.metrics()).toContain(`workqueue_work_duration_seconds_sum${labels} 5`);
});
