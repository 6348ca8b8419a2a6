import { PassThrough, Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { KubeError, NotFoundError, TransportError } from '../../../src/kube/errors.ts';
import type { Pod } from '../../../src/kube/types.ts';
import type { GpuInstance, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { type InstanceLogSpec, packLines } from '../../../src/resources/instance-log.ts';
import { logSchema } from '../../../src/http/features/logs/schema.ts';
import { type FakeClock, fakeClock } from '../../support/fake-clock.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { startedPod } from '../../support/instance-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { waitFor } from '../../support/wait-for.ts';

const AT = '2026-01-01T00:00:00.000000001Z';

let api: LoneApi | undefined;
let clock: FakeClock;
afterEach(async () => {
  const closed = api?.close();
  // What the server waits for at its end.
  await clock.advance(60_000);
  await closed;
});

function instanceOf(namespace: string, over: Partial<GpuInstanceStatus> = {}): GpuInstance {
  const ready = { type: 'Ready', status: 'True', reason: 'Running', message: '', lastTransitionTime: AT } as const;
  const status = { claim: claimOn('n'), incarnation: 1, podName: 'one-1', conditions: [ready], ...over };
  const { metadata, spec } = gpuInstance('one');
  return { metadata: { ...metadata, namespace }, spec, status };
}

function podOf(namespace: string, main: object = { containerID: 'c', state: { running: {} } }): Pod {
  return startedPod({ containerStatuses: [{ name: 'main', ...main }] } as never, { namespace });
}

type Stream = (signal: AbortSignal | undefined) => Readable;

interface Over {
  instance?: Partial<GpuInstanceStatus>;
  main?: object;
  /** Names of kept logs, and what was kept. */
  kept?: Record<string, Partial<InstanceLogSpec>>;
  /** The instance is gone: its history is left. */
  gone?: boolean;
}

const HISTORY = {
  metadata: { name: 'h-uid-one', namespace: 'a', creationTimestamp: AT },
  spec: { instance: 'one', instanceUid: 'uid-one', dropped: 0, entries: [{ start: 1 }, { start: 2 }] },
};

async function serve(stream: Stream | Error, over: Over = {}) {
  const tenants = ['a', 'b', 'c', 'd', 'e'];
  clock = fakeClock();
  api = await startLoneApi({
    tenants,
    clock,
    instances: over.gone === true ? [] : tenants.map((namespace) => instanceOf(namespace, over.instance)),
    pods: tenants.map((namespace) => podOf(namespace, over.main)),
    client: {
      get: (_type, { namespace, name }) => {
        const spec = namespace === 'a' ? over.kept?.[name] : undefined;
        const none = new NotFoundError({ message: 'gone', status: 404, reason: 'NotFound' });
        return spec === undefined ? Promise.reject(none) : Promise.resolve({ metadata: { name }, spec } as never);
      },
      list: (_type, options) =>
        Promise.resolve({ items: (options?.namespace === 'a' ? [HISTORY] : []) as never[], resourceVersion: '1' }),
      stream: (_path, _query, { signal }) =>
        stream instanceof Error ? Promise.reject(stream) : Promise.resolve(stream(signal)),
    },
  });
  const { port } = api.address;
  const get = async (tenant: string, query = '') => {
    const headers = { authorization: `Bearer ${tenant}` };
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/instances/one/logs${query}`, { headers });
    return { status: answer.status, json: (await answer.json()) as { error: { code: string; message: string } } };
  };
  const follow = (tenant: string): Promise<Response> => {
    const headers = { authorization: `Bearer ${tenant}`, accept: 'text/event-stream' };
    return fetch(`http://127.0.0.1:${port}/api/v1/instances/one/logs`, { headers });
  };
  return { follow, get };
}

describe('the log of an instance', () => {
  it('is cut to the newest 1 MiB, and says so', async () => {
    const line = `${AT} ${'x'.repeat(10_000)}\n`;
    const { get } = await serve(() =>
      Readable.from(Array.from({ length: 300 }, (_, n) => Buffer.from(n === 299 ? `${AT} last\n` : line))),
    );
    const { data, truncated } = logSchema.parse((await get('a')).json);
    expect(truncated).toBe(true);
    expect(data.at(-1)?.text).toBe('last');
    expect(data.length).toBe(105);
    expect(new Set(data.map(({ id }) => id)).size).toBe(105);
  });

  it('is read at the pace of its tenant, however often and long, and another one at its own', async () => {
    let chunks = 0;
    const mebibyte = Buffer.from(`${AT} ${'x'.repeat(64_000)}\n`.repeat(16));
    const { get } = await serve(() =>
      Readable.from(
        (function* () {
          for (let at = 0; at < 16; at += 1) {
            chunks += 1;
            yield mebibyte;
          }
        })(),
        { highWaterMark: 1 },
      ),
    );
    const hostile = Array.from({ length: 10 }, () => get('a', '?source=on_start'));
    const timers = clock.pending;
    // Each has the timer of its longest time, and one until it may go on.
    await waitFor('the readings to wait', () => clock.pending >= timers + 20 || chunks === 160);
    expect(chunks).toBeLessThan(50);
    const before = chunks;
    const honest = get('b', '?source=on_start');
    await waitFor('the pieces of another tenant', () => chunks > before + 4);
    await clock.advance(31_000);
    expect((await honest).status).toBe(200);
    await Promise.all(hostile);
  });

  it('leaves out the lines of Jupyter before it counts, for the start script', async () => {
    const { get } = await serve(() =>
      Readable.from([Buffer.from(`${AT} a\n${AT} b\n${AT} [jupyter] c\n${AT} [jupyter] d\n`)]),
    );
    const { data } = logSchema.parse((await get('a', '?source=on_start&tail=1')).json);
    expect(data.map(({ text }) => text)).toEqual(['b']);
  });

  it('is read by so many at once that others can too, and no longer than half a minute', async () => {
    const hanging: PassThrough[] = [];
    const { get } = await serve((signal) => {
      const stream = new PassThrough();
      signal?.addEventListener('abort', () => stream.destroy(signal.reason as Error));
      hanging.push(stream);
      return stream;
    });
    const greedy = Array.from({ length: 32 }, () => get('a'));
    await waitFor('the readings', () => hanging.length === 32);
    expect(await get('a')).toMatchObject({ status: 503, json: { error: { code: 'overloaded' } } });
    const honest = get('b');
    await waitFor('the reading of another tenant', () => hanging.length === 33);
    await clock.advance(30_000);
    for (const { status, json } of await Promise.all([...greedy, honest])) {
      expect([status, json.error.code]).toEqual([503, 'log_unavailable']);
    }
    const after = get('a');
    await waitFor('a place', () => hanging.length === 34);
    hanging.at(-1)?.end(`${AT} a\n`);
    expect((await after).status).toBe(200);
  });

  it('is followed by so many at once that others can too, and that connections are left for watches', async () => {
    const { follow, get } = await serve((signal) => {
      const log = new PassThrough();
      signal?.addEventListener('abort', () => log.destroy(signal.reason as Error));
      return log;
    });
    // A response that nothing refers to is collected, and its connection closed.
    const open: Awaited<ReturnType<typeof follow>>[] = [];
    const statuses = async (tenant: string, count: number): Promise<number[]> => {
      const answers = await Promise.all(Array.from({ length: count }, () => follow(tenant)));
      open.push(...answers);
      return [...new Set(answers.map(({ status }) => status))];
    };
    for (const tenant of ['a', 'b', 'c']) expect(await statuses(tenant, 32)).toEqual([200]);
    expect(await statuses('d', 16)).toEqual([200]);
    expect(await statuses('d', 1)).toEqual([503]);
    expect(await statuses('e', 1)).toEqual([200]);
    expect((await get('d', '?follow=true')).json.error.code).toBe('overloaded');
    expect(open).toHaveLength(114);
  });

  it('is followed until a quarter of an hour brings no line, and for an hour at most', async () => {
    const logs: PassThrough[] = [];
    const { follow } = await serve((signal) => {
      const log = new PassThrough();
      signal?.addEventListener('abort', () => log.destroy(signal.reason as Error));
      logs.push(log);
      log.write(`${AT} a\n`);
      return log;
    });
    let over = 0;
    const [silent, busy] = [follow('a'), follow('b')].map(async (stream) => {
      const text = await (await stream).text();
      over += 1;
      return text;
    });
    await waitFor('both logs', () => logs.length === 2);
    await clock.advance(10 * 60_000);
    for (const log of logs.slice(1)) log.write(`${AT} b\n`);
    await clock.advance(6 * 60_000);
    await waitFor('the end of the silent one', () => over === 1);
    for (let minutes = 16; minutes < 60; minutes += 11) {
      expect(over).toBe(1);
      for (const log of logs.slice(1)) log.write(`${AT} c\n`);
      await clock.advance(11 * 60_000);
    }
    const texts = await Promise.all([silent, busy]);
    expect(texts.map((text = '') => text.match(/^event: line$/gm)?.length).toSorted((a = 0, b = 0) => a - b)).toEqual([
      1, 6,
    ]);
  });

  it.each([
    [
      500,
      'Get "https://10.0.0.7:10250/containerLogs/a/one-1/main": dial tcp: connection refused',
      503,
      'log_unavailable',
    ],
    [400, 'previous terminated container "main" in pod "one-1" not found', 404, 'log_not_found'],
    [400, 'unable to retrieve container logs for containerd://c', 404, 'log_not_found'],
    [400, 'container "main" in pod "one-1" is waiting to start: ContainerCreating', 409, 'instance_not_running'],
  ])('says in its own words what the kubelet means: %d %s', async (status, message, answer, code) => {
    const { get } = await serve(new KubeError({ message, status, reason: 'Test' }));
    const { json, ...got } = await get('a');
    expect([got.status, json.error.code]).toEqual([answer, code]);
    expect(json.error.message).not.toMatch(/10\.0\.0\.7|containerd/);
  });

  it('is another failure when the API server is away', async () => {
    const { get } = await serve(new TransportError({ message: 'refused', status: 0, reason: 'ECONNREFUSED' }));
    expect((await get('a')).json.error.code).toBe('cluster_unavailable');
  });

  it('is of the container that ended, while the kubelet waits to start the next one', async () => {
    const last = { lastState: { terminated: { containerID: 'c1', exitCode: 1 } } };
    const main = { containerID: 'c1', state: { waiting: { reason: 'CrashLoopBackOff' } }, ...last };
    const { get } = await serve(() => Readable.from([Buffer.from(`${AT} it crashed\n`)]), { main });
    expect((await get('a')).status).toBe(200);
  });

  it('says the state of an instance that has no container', async () => {
    const ready = {
      type: 'Ready',
      status: 'False',
      reason: 'PullingImage',
      message: 'Pulling x.',
      lastTransitionTime: AT,
    } as const;
    const main = { state: { waiting: { reason: 'ContainerCreating' } } };
    const { get } = await serve(new Error('unused'), { instance: { conditions: [ready] }, main });
    expect((await get('a')).json.error.message).toMatch(
      /^The instance is pulling \(PullingImage\): .* Pulling x\. Try again/,
    );
  });
});

describe('the log of a start that is over', () => {
  const ready = {
    type: 'Ready',
    status: 'False',
    reason: 'ContainerFailed',
    message: '',
    lastTransitionTime: AT,
  } as const;
  const instance = { podName: undefined, claim: undefined, incarnation: 2, conditions: [ready] } as never;
  const linesOf = (...texts: string[]): string => packLines(texts.map((text) => ({ time: AT, text })));
  const kept = {
    'l-uid-one-1': { lines: linesOf('the first start'), truncated: false },
    'l-uid-one-2': { lines: linesOf('a', 'b', 'c'), previous: linesOf('it crashed'), truncated: true },
  };

  it('is what was kept, with what was asked for of it', async () => {
    const { get } = await serve(new Error('unused'), { instance, kept });
    const read = async (query = '') => {
      const { data, ...about } = logSchema.parse((await get('a', query)).json);
      return { ...about, texts: data.map(({ text }) => text), ids: data.map(({ id }) => id) };
    };
    expect(await read()).toMatchObject({ kept: true, start: 2, truncated: true, texts: ['a', 'b', 'c'] });
    expect(await read('?tail=2')).toMatchObject({ truncated: false, texts: ['b', 'c'] });
    expect(await read('?previous=true')).toMatchObject({ texts: ['it crashed'] });
    expect(await read('?start=1')).toMatchObject({ start: 1, texts: ['the first start'], ids: [`1-${AT}-0`] });
    expect((await get('a', '?start=7')).json.error.code).toBe('log_not_found');
    expect((await get('a', '?start=1&previous=true')).json.error.code).toBe('log_not_found');
    expect((await get('b')).json.error).toMatchObject({
      code: 'instance_not_running',
      message: expect.stringContaining('No log of its last start was kept'),
    });
  });

  it('is read after the instance, by its own tenant, and followed to its end', async () => {
    const { follow, get } = await serve(new Error('unused'), { gone: true, kept });
    expect(logSchema.parse((await get('a')).json)).toMatchObject({ kept: true, start: 2, instance_id: 'one' });
    expect((await get('b')).json.error.code).toBe('instance_not_found');
    const events = (await (await follow('a')).text()).match(/^(event|data): .*$/gm) ?? [];
    expect(events.filter((line) => line.startsWith('event'))).toEqual([
      'event: line',
      'event: line',
      'event: line',
      'event: end',
    ]);
  });
});
