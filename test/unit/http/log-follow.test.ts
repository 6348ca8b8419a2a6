import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { LogFollower } from '../../../src/http/features/logs/follow.ts';
import type { KeptLog } from '../../../src/http/features/logs/kept.ts';
import { type Position, positionOf } from '../../../src/http/features/logs/position.ts';
import { logQuerySchema } from '../../../src/http/features/logs/schema.ts';
import { KubeError, TransportError } from '../../../src/kube/errors.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import type { Pod } from '../../../src/kube/types.ts';
import type { GpuInstance, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';
import { FakeStore } from '../../support/fake-store.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { startedPod } from '../../support/instance-world.ts';

type ContainerStatus = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number];

const STARTED = '2026-01-01T00:00:00Z';

function status(reason: string, incarnation = 1): GpuInstanceStatus {
  const ready = { type: 'Ready', status: 'False', reason, message: '', lastTransitionTime: STARTED } as const;
  return { claim: claimOn('n'), incarnation, podName: `one-${incarnation}`, conditions: [ready] };
}

function runs(id: string, before?: string): Partial<ContainerStatus> {
  return {
    containerID: id,
    state: { running: { startedAt: STARTED } },
    ...(before !== undefined && lastOf(before)),
  };
}

function lastOf(id: string): Partial<ContainerStatus> {
  return { lastState: { terminated: { containerID: id, exitCode: 1, finishedAt: '2026-01-01T00:00:05Z' } } };
}

function ended(id: string): Partial<ContainerStatus> {
  return { containerID: id, state: { terminated: { containerID: id, exitCode: 1 } } };
}

const stops: AbortController[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
});

function startedWorld(query: Record<string, unknown> = {}, after?: Position) {
  return world(after, query);
}

function world(after?: Position, query: Record<string, unknown> = {}) {
  const clock = fakeClock();
  const instances = new FakeStore<GpuInstance>();
  const pods = new FakeStore<Pod>();
  const opened: Record<string, string>[] = [];
  const answers: (Error | PassThrough)[] = [];
  const kept = new Map<number, KeptLog>();
  const events: string[] = [];
  const ids: (string | undefined)[] = [];
  const read = { characters: 0, mayGoOn: Promise.resolve() };
  const stop = new AbortController();
  stops.push(stop);
  const stream: KubeClient['stream'] = (_path, asked, { signal, headTimeoutMs = 0 }) => {
    opened.push({ ...asked, ...(headTimeoutMs > 3_600_000 && { head: 'any time' }) });
    const answer = answers.shift() ?? new KubeError({ message: 'nothing more', status: 500, reason: 'Test' });
    if (answer instanceof Error) return Promise.reject(answer);
    signal?.addEventListener('abort', () => answer.destroy(new Error('aborted')));
    return Promise.resolve(answer);
  };
  const follower = new LogFollower(
    {
      client: { stream } as KubeClient,
      clock,
      instances,
      pods,
      signal: stop.signal,
      kept: (start) => Promise.resolve(kept.get(start)),
      pace: (characters) => {
        read.characters += characters;
        return read.mayGoOn;
      },
      send(batch) {
        for (const { type, id, data } of batch) {
          const { text, reason = '' } = JSON.parse(data) as { text?: string; reason?: string };
          events.push(text ?? `${type} ${reason}`.trim());
          if (id !== undefined) ids.push(id);
        }
        return Promise.resolve();
      },
    },
    { instance: { namespace: 'default', name: 'one' }, query: logQuerySchema.parse(query), after },
  );
  return {
    clock,
    events,
    follower,
    ids,
    read,
    /** What was kept of a start. */
    keeps: (start: number, lines: readonly (readonly [second: number, text: string])[], previous?: KeptLog['lines']) =>
      kept.set(start, {
        lines: lines.map(([second, text]) => ({ time: timeOf(second), text })),
        previous,
        truncated: false,
      }),
    opened,
    instance: (reason = 'Running', incarnation = 1) =>
      instances.put(gpuInstance('one', {}, status(reason, incarnation))),
    put: (over: GpuInstanceStatus) => instances.put(gpuInstance('one', {}, over)),
    remove: () => instances.remove('default/one'),
    removePod: () => pods.remove('default/one-1'),
    container: (main: Partial<ContainerStatus>, incarnation = 1) =>
      pods.put(startedPod({ containerStatuses: [{ name: 'main', ...main }] } as never, { name: `one-${incarnation}` })),
    /** The next log that the kubelet gives. */
    log: (...lines: (readonly [second: number, text: string])[]): PassThrough => {
      const log = new PassThrough();
      answers.push(log);
      for (const [second, text] of lines) write(log, second, text);
      return log;
    },
    fails: (error: Error) => answers.push(error),
  };
}

function timeOf(second: number): string {
  return `2026-01-01T00:00:0${second}.000000000Z`;
}

function write(log: PassThrough, second: number, text: string): void {
  log.write(`${timeOf(second)} ${text}\n`);
}

const NO_PREVIOUS = new KubeError({
  message: 'previous terminated container "main" in pod "one-1" not found',
  status: 400,
  reason: 'BadRequest',
});
const AFTER_A = positionOf('1-2026-01-01T00:00:01.000000000Z-0');

describe('following a log', () => {
  it('waits for a container, goes on through a restart, and ends with the instance', async () => {
    const { clock, instance, container, events, follower, log, remove } = world();
    instance('PullingImage');
    const running = follower.run();
    await settle();
    const first = log([1, 'a']);
    container(runs('c1'));
    await settle();
    expect(events).toEqual(['waiting PullingImage', 'a']);
    write(first, 2, 'b');
    first.end();
    log([1, 'a'], [2, 'b']).end();
    log([3, 'c']);
    container(runs('c2', 'c1'));
    await settle();
    await clock.advance(2000);
    expect(events.slice(2)).toEqual(['b', 'restart', 'c']);
    remove();
    container(ended('c2'));
    await settle();
    stops.at(-1)?.abort();
    await running;
  });

  it('opens a log again that broke, from the last second on, and repeats nothing', async () => {
    const { clock, instance, container, events, follower, ids, log, opened } = world();
    instance();
    container(runs('c1'));
    const first = log([1, 'a'], [1, 'b']);
    void follower.run();
    await settle();
    first.destroy(new Error('reset'));
    log([1, 'a'], [1, 'b'], [1, 'c'], [2, 'd']);
    await settle();
    await clock.advance(2000);
    expect(events).toEqual(['a', 'b', 'c', 'd']);
    expect(new Set(ids).size).toBe(4);
    expect(opened.map(({ sinceTime, tailLines, follow, head }) => [sinceTime, tailLines, follow, head])).toEqual([
      [undefined, '1000', 'true', 'any time'],
      ['2026-01-01T00:00:01Z', undefined, 'true', 'any time'],
    ]);
  });

  it('reads no faster than the pace of its tenant, and leaves the rest with the kubelet', async () => {
    const { instance, container, events, follower, log, read } = world();
    const { promise, resolve } = Promise.withResolvers<void>();
    read.mayGoOn = promise;
    instance();
    container(runs('c1'));
    const first = log([1, 'x'.repeat(100)]);
    void follower.run();
    await settle();
    write(first, 2, 'b');
    await settle();
    expect(events).toHaveLength(1);
    expect(read.characters).toBeGreaterThan(100);
    resolve();
    await settle();
    expect(events.slice(1)).toEqual(['b']);
  });

  it('resumes in the log before a restart', async () => {
    const { instance, container, events, follower, log, opened } = world(AFTER_A);
    instance();
    container(runs('c2', 'c1'));
    log([1, 'a'], [2, 'b']).end();
    log([6, 'c']);
    void follower.run();
    await settle();
    expect(events).toEqual(['b', 'restart', 'c']);
    expect(opened.map(({ previous }) => previous)).toEqual(['true', undefined]);
  });

  it('asks the kubelet for the log before a restart that the cache does not show yet', async () => {
    const { instance, container, events, follower, log, opened } = world(AFTER_A);
    instance();
    container(runs('c1'));
    log([6, 'c']);
    log([1, 'a'], [2, 'b']).end();
    log([6, 'c']);
    void follower.run();
    await settle();
    expect(events).toEqual(['b', 'restart', 'c']);
    expect(opened.map(({ previous }) => previous)).toEqual([undefined, 'true', undefined]);
  });

  it('says a restart once, also when its lines came before the cache showed it', async () => {
    const { instance, container, events, follower, log } = world(AFTER_A);
    instance('Starting');
    container({ containerID: 'c1', state: { waiting: { reason: 'CrashLoopBackOff' } }, ...lastOf('c1') });
    log([5, 'c']).end();
    log([1, 'a'], [4, 'b']).end();
    log([5, 'c']).end();
    void follower.run();
    await settle();
    expect(events).toEqual(['b', 'restart', 'c', 'waiting Starting']);
    log([4, 'b']).end();
    log([5, 'c'], [6, 'd']);
    container(runs('c2', 'c1'));
    await settle();
    expect(events.slice(4)).toEqual(['d']);
  });

  it('asks again for the log before a restart when the kubelet failed, and says a gap where it goes on to fail', async () => {
    const failed = new KubeError({
      message: 'unable to retrieve container logs for containerd://c1',
      status: 400,
      reason: 'BadRequest',
    });
    const passes = world(AFTER_A);
    passes.fails(failed);
    passes.log([1, 'a'], [2, 'b']).end();
    passes.log([6, 'c']);
    const stays = world(AFTER_A);
    for (let count = 0; count < 4; count += 1) stays.fails(failed);
    stays.log([6, 'c']);
    for (const { clock, instance, container, follower } of [passes, stays]) {
      instance();
      container(runs('c2', 'c1'));
      void follower.run();
      await settle();
      await clock.advance(20_000);
    }
    expect(passes.events).toEqual(['b', 'restart', 'c']);
    expect(stays.events).toEqual(['restart', 'gap', 'c']);
  });

  it('says where lines may be missing: the log was rotated, removed, or went with its pod', async () => {
    const rotated = world(AFTER_A);
    rotated.instance();
    rotated.container(runs('c1'));
    rotated.log([3, 'c']);
    rotated.fails(NO_PREVIOUS);
    rotated.log([3, 'c']);
    const removed = world(AFTER_A);
    removed.instance();
    removed.container(runs('c2', 'c1'));
    removed.fails(NO_PREVIOUS);
    removed.log([6, 'd']);
    const restarted = world(AFTER_A);
    restarted.instance('Running', 2);
    restarted.container(runs('c9'), 2);
    restarted.log([7, 'e']);
    for (const { follower } of [rotated, removed, restarted]) void follower.run();
    await settle();
    expect(rotated.events).toEqual(['gap', 'c']);
    expect(removed.events).toEqual(['restart', 'gap', 'd']);
    expect(restarted.events).toEqual(['gap', 'e']);
  });

  it('tries again while the node is away, ever less often, and says so once', async () => {
    const { clock, instance, container, events, follower, log, fails, opened } = world();
    instance();
    container(runs('c1'));
    for (let count = 0; count < 5; count += 1) {
      fails(new TransportError({ message: 'dial tcp: connection refused', status: 503, reason: 'ServiceUnavailable' }));
    }
    log([1, 'a']);
    void follower.run();
    await clock.advance(29_000);
    expect(opened).toHaveLength(5);
    expect(events).toEqual(['waiting LogUnavailable']);
    await clock.advance(1000);
    expect(events.at(-1)).toBe('a');
  });

  it.each(['Stopped', 'ContainerFailed'])('ends when the instance is over: %s', async (reason) => {
    const { instance, container, events, follower, log } = world();
    instance(reason);
    container(ended('c1'));
    log([1, 'a']).end();
    await follower.run();
    expect(events).toEqual(['a', `end ${reason}`]);
  });
});

describe('following the log of a start that is over', () => {
  const over = (world: ReturnType<typeof startedWorld>, reason: string, incarnation = 1): void => {
    const { podName: _gone, claim: _free, ...rest } = status(reason, incarnation);
    world.put(rest);
  };

  it('sends what was kept, and ends', async () => {
    const one = startedWorld({ tail: 2 });
    one.keeps(1, [
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
    ]);
    over(one, 'ContainerFailed');
    await one.follower.run();
    expect([one.events, one.opened]).toEqual([['b', 'c', 'end ContainerFailed'], []]);
  });

  it('goes on after the last line that the client has, also of an earlier start', async () => {
    const one = startedWorld({}, AFTER_A);
    one.keeps(1, [
      [1, 'a'],
      [2, 'b'],
    ]);
    one.keeps(2, [[5, 'c']]);
    over(one, 'Stopped', 2);
    await one.follower.run();
    expect(one.events).toEqual(['b', 'c', 'end Stopped']);
  });

  it('says that lines may be missing where the last line of the client was not kept, or nothing was', async () => {
    const cut = startedWorld({}, AFTER_A);
    cut.keeps(1, [[4, 'd']]);
    over(cut, 'Stopped');
    const lost = startedWorld({}, AFTER_A);
    over(lost, 'Stopped', 2);
    for (const { follower } of [cut, lost]) await follower.run();
    expect(cut.events).toEqual(['gap', 'd', 'end Stopped']);
    expect(lost.events).toEqual(['gap', 'end Stopped']);
  });

  it('has the last lines of a log that was cut off when its pod went', async () => {
    const one = startedWorld();
    one.instance();
    one.container(runs('c1'));
    const live = one.log([1, 'a']);
    const running = one.follower.run();
    await settle();
    live.destroy(new Error('the pod is gone'));
    one.keeps(1, [
      [1, 'a'],
      [2, 'the last words'],
    ]);
    one.removePod();
    over(one, 'Stopped');
    await one.clock.advance(5000);
    await running;
    expect(one.events).toEqual(['a', 'the last words', 'end Stopped']);
  });

  it('has the container before the last restart too, where it was asked for', async () => {
    const one = startedWorld({ previous: true });
    one.keeps(1, [[3, 'b']], [{ time: '2026-01-01T00:00:01.000000000Z', text: 'it crashed' }]);
    over(one, 'Stopped');
    await one.follower.run();
    expect(one.events).toEqual(['it crashed', 'restart', 'b', 'end Stopped']);
  });
});
