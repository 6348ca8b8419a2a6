import { Readable } from 'node:stream';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { LogKeeper, type LogSubject } from '../../../src/controllers/history/keep-log.ts';
import { LogTakes } from '../../../src/controllers/history/log-takes.ts';
import { KEPT_BYTES, type LogMeta, surplusLogs } from '../../../src/controllers/history/old-logs.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { AlreadyExistsError } from '../../../src/kube/errors.ts';
import type { Pod } from '../../../src/kube/types.ts';
import { customResourceDefinition } from '../../../src/resources/crd.ts';
import {
  type InstanceLog,
  instanceLogResource,
  instanceLogSpecSchema,
  LOG_BYTES,
  LOG_OF_START,
  unpackLines,
} from '../../../src/resources/instance-log.ts';
import { INSTANCE_UID_LABEL } from '../../../src/resources/pod/owner.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { startedPod } from '../../support/instance-world.ts';

const log = pino({ level: 'silent' });
const AT = '2026-01-01T00:00:00.000000001Z';
const never = new AbortController().signal;

function subject(
  main: object = { state: { terminated: { exitCode: 3 } } },
  phase: LogSubject['phase'] = 'ended',
): LogSubject {
  const labels = { 'berth.dev/instance': 'one', 'berth.dev/instance-uid': 'uid-one' };
  const pod = startedPod({ containerStatuses: [{ name: 'main', ...main }] } as never, { name: 'one-4', labels });
  return { pod, phase };
}

/** A kubelet with these logs, and an API server that keeps InstanceLogs. */
function world(logs: { now: readonly (string | Buffer)[]; previous?: readonly string[] }) {
  const stored = new Map<string, InstanceLog>();
  const asked: Record<string, string>[] = [];
  const client = {
    stream(_path: string, query: Record<string, string>) {
      asked.push(query);
      const lines = query['previous'] === 'true' ? (logs.previous ?? []) : logs.now;
      return Promise.resolve(
        Readable.from(
          lines.map((line) => Buffer.concat([Buffer.from(`${AT} `), Buffer.from(line), Buffer.from('\n')])),
        ),
      );
    },
    create(_type: unknown, object: InstanceLog) {
      const { name } = object.metadata;
      if (stored.has(name)) {
        return Promise.reject(new AlreadyExistsError({ message: 'there', status: 409, reason: 'AlreadyExists' }));
      }
      stored.set(name, object);
      return Promise.resolve(object);
    },
    patch(_type: unknown, { name }: { name: string }, body: InstanceLog) {
      stored.set(name, { ...(stored.get(name) as InstanceLog), spec: body.spec });
      return Promise.resolve(body);
    },
  } as unknown as KubeClient;
  const keeper = new LogKeeper({ client, log });
  const kept = () => {
    const spec = stored.get('l-uid-one-4')?.spec;
    return spec && unpackLines(spec.lines).map(({ text }) => text);
  };
  return { asked, kept, keeper, stored };
}

describe('the end of a log', () => {
  it('is kept under the number of its start, with the times of its lines', async () => {
    const { keeper, stored } = world({ now: ['working', 'failed'] });
    await keeper.keep(subject(), never);
    const { metadata, spec } = stored.get('l-uid-one-4') as InstanceLog;
    expect(metadata.labels).toMatchObject({ 'berth.dev/instance': 'one', 'berth.dev/start': '4' });
    expect(instanceLogSpecSchema.parse(spec)).toMatchObject({ instance: 'one', start: 4, truncated: false });
    expect(unpackLines(spec.lines)).toEqual([
      { time: AT, text: 'working' },
      { time: AT, text: 'failed' },
    ]);
    expect(spec.previous).toBeUndefined();
  });

  it('is the last 64 KiB, whatever was written, and fits into its object', async () => {
    const bytes = Buffer.alloc(20_000, 0xff);
    const { keeper, stored, kept } = world({
      now: [
        ...Array.from({ length: 3000 }, (_, n) => `<${n}\u0000${'é\u0007&'.repeat(200)}`),
        bytes,
        'x'.repeat(30_000),
      ],
    });
    await keeper.keep(subject(), never);
    const lines = kept() ?? [];
    expect(lines.at(-1)).toMatch(/^x{8192} \[line cut by Berth\]$/);
    expect(lines.at(-2)).toMatch(/^\uFFFD{2730} \[line cut by Berth\]$/);
    const size = Buffer.byteLength(lines.join(''));
    expect(size).toBeLessThanOrEqual(64 * 1024);
    expect(size).toBeGreaterThan(60 * 1024);
    const { spec } = stored.get('l-uid-one-4') as InstanceLog;
    expect(spec.truncated).toBe(true);
    expect(instanceLogSpecSchema.safeParse(spec).success).toBe(true);
    expect(JSON.stringify(spec).length).toBeLessThan(100 * 1024);
  });

  it('is cut between two characters, and counted as it is stored', async () => {
    const { keeper, stored, kept } = world({ now: [`a${'€'.repeat(5000)}`] });
    await keeper.keep(subject(), never);
    expect(kept()?.[0]).toMatch(/^a€{2730} \[line cut by Berth\]$/);
    const { metadata, spec } = stored.get('l-uid-one-4') as InstanceLog;
    expect(metadata.annotations?.[LOG_BYTES]).toBe(String(spec.lines.length));
  });

  it('has that of the container before the last restart, where there was one', async () => {
    const last = { lastState: { terminated: { containerID: 'c1', exitCode: 1 } } };
    const { asked, keeper, stored } = world({ now: ['again'], previous: ['it crashed'] });
    await keeper.keep(subject({ state: { running: {} }, ...last }, 'running'), never);
    const spec = stored.get('l-uid-one-4')?.spec;
    expect(unpackLines(spec?.previous ?? '').map(({ text }) => text)).toEqual(['it crashed']);
    expect(asked.map(({ previous, tailLines }) => [previous, tailLines])).toEqual([
      [undefined, '2001'],
      ['true', '501'],
    ]);
    // While the kubelet waits to start another, the log is that of the one that ended.
    const waiting = world({ now: ['it crashed'] });
    await waiting.keeper.keep(subject({ state: { waiting: { reason: 'CrashLoopBackOff' } }, ...last }), never);
    expect(waiting.asked).toHaveLength(1);
  });

  it('has the last words, and loses none where the kubelet has removed the container meanwhile', async () => {
    const logs = { now: ['working'] as string[] };
    const { keeper, kept } = world(logs);
    await keeper.keep(subject({ state: { running: {} } }, 'running'), never);
    logs.now = ['working', 'saved on TERM'];
    await keeper.keep(subject(), never);
    expect(kept()).toEqual(['working', 'saved on TERM']);
    logs.now = [];
    await keeper.keep(subject(), never);
    expect(kept()).toEqual(['working', 'saved on TERM']);
  });

  it('has the last words of a program that is followed to its end, whose container the kubelet removes then', async () => {
    const logs = { now: ['working', 'saved on TERM'] };
    const { asked, keeper, kept } = world(logs);
    await keeper.keep(subject({ state: { running: {} } }, 'ending'), never);
    logs.now = [];
    await keeper.keep(subject(), never);
    expect([kept(), asked.map(({ follow }) => follow)]).toEqual([
      ['working', 'saved on TERM'],
      ['true', undefined],
    ]);
  });

  it('is not followed when the program floods it', async () => {
    const { keeper, kept } = world({ now: Array.from({ length: 17 }, () => 'x'.repeat(1024 * 1024)) });
    const flood = subject({ state: { running: {} } }, 'ending');
    await expect(keeper.keep(flood, never)).rejects.toThrow('floods');
    expect(kept()).toBeUndefined();
  });

  it('has a schema that the API server takes', () => {
    expect(customResourceDefinition(instanceLogResource)).toMatchObject({ spec: { scope: 'Namespaced' } });
  });
});

describe('logs that are kept before a pod goes', () => {
  it('are read beside the caller, who is woken when they are kept', async () => {
    const woken: string[] = [];
    const reading = Promise.withResolvers<void>();
    const logs = new LogTakes({ keep: () => reading.promise, clock: fakeClock(), log });
    logs.source.start((key) => woken.push(key));
    expect([logs.isOver('k', subject()), logs.isOver('k', subject()), woken]).toEqual([false, false, []]);
    reading.resolve();
    await settle();
    expect([logs.isOver('k', subject()), woken]).toEqual([true, ['k']]);
  });

  it('are waited for no longer than two seconds, and ten once the container has ended, however many there are', async () => {
    const clock = fakeClock();
    const woken: string[] = [];
    let begun = 0;
    const keep = (_: LogSubject, signal: AbortSignal): Promise<void> => {
      begun += 1;
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    };
    const logs = new LogTakes({ keep, clock, log });
    logs.source.start((key) => woken.push(key));
    const running = subject(undefined, 'running');
    for (let index = 0; index < 40; index += 1) logs.isOver(`k${index}`, index < 20 ? running : subject());
    await settle();
    expect(begun).toBe(8);
    await clock.advance(1_999);
    expect(woken).toHaveLength(0);
    await clock.advance(1);
    expect([new Set(woken).size, logs.isOver('k19', running)]).toEqual([20, true]);
    await clock.advance(7_999);
    expect(new Set(woken).size).toBe(20);
    await clock.advance(1);
    expect([new Set(woken).size, logs.isOver('k39', subject())]).toEqual([40, true]);
  });

  it('do not stop the ending when they cannot be kept', async () => {
    const logs = new LogTakes({ keep: () => Promise.reject(new Error('no such kind')), clock: fakeClock(), log });
    logs.isOver('k', subject());
    await settle();
    expect(logs.isOver('k', subject())).toBe(true);
  });

  it('are read again once the container has ended', async () => {
    const seen: string[] = [];
    const keep = ({ phase }: LogSubject): Promise<void> => Promise.resolve(void seen.push(phase));
    const logs = new LogTakes({ keep, clock: fakeClock(), log });
    for (const phase of ['running', 'running', 'ended', 'ended'] as const) {
      logs.isOver('k', subject(undefined, phase));
      await settle();
    }
    expect(seen).toEqual(['running', 'ended']);
  });

  /** Logs that a test lets end or fail, by the order in which their reading began. */
  function readings() {
    const clock = fakeClock();
    const begun: (PromiseWithResolvers<void> & LogSubject & { signal: AbortSignal })[] = [];
    const keep = (one: LogSubject, signal: AbortSignal): Promise<void> => {
      const reading = Promise.withResolvers<void>();
      signal.addEventListener('abort', () => reading.reject(new Error('aborted')));
      begun.push({ ...reading, ...one, signal });
      return reading.promise;
    };
    const logs = new LogTakes({ keep, clock, log });
    return { begun, clock, logs, phases: () => begun.map(({ phase }) => phase), stop: logs.source.start(() => {}) };
  }
  const ended = subject();

  it('are followed while the program ends, and read only once', async () => {
    const { begun, logs, phases } = readings();
    logs.follow('k', ended.pod);
    logs.follow('k', ended.pod);
    expect(logs.isOver('k', ended)).toBe(false);
    begun[0]?.resolve();
    await settle();
    expect([logs.isOver('k', ended), phases()]).toEqual([true, ['ending']]);
  });

  it('are read when the program has ended, if what was followed broke off', async () => {
    const { begun, logs, phases } = readings();
    logs.follow('k', ended.pod);
    begun[0]?.reject(new Error('cut'));
    await settle();
    expect(logs.isOver('k', ended)).toBe(false);
    await settle();
    begun[1]?.resolve();
    await settle();
    expect([logs.isOver('k', ended), phases()]).toEqual([true, ['ending', 'ended']]);
  });

  it('hold a pod for ten seconds after its end, however long they are followed', async () => {
    const { begun, clock, logs } = readings();
    logs.follow('k', ended.pod);
    await clock.advance(60_000);
    expect(logs.isOver('k', ended)).toBe(false);
    await clock.advance(9_999);
    expect([logs.isOver('k', ended), begun[0]?.signal.aborted]).toEqual([false, false]);
    await clock.advance(1);
    expect([logs.isOver('k', ended), begun[0]?.signal.aborted]).toEqual([true, true]);
  });

  it('are followed of sixteen pods of a tenant at once, and of none that goes or whose leader ends', async () => {
    const { begun, logs, phases, stop } = readings();
    for (let index = 0; index < 40; index += 1) logs.follow(`k${index}`, ended.pod);
    expect(phases()).toHaveLength(16);
    logs.leave('k0', ended.pod);
    await settle();
    logs.follow('k20', ended.pod);
    expect(begun.map(({ signal }) => signal.aborted)).toEqual([true, ...Array.from({ length: 16 }, () => false)]);
    stop();
    expect(begun.every(({ signal }) => signal.aborted)).toBe(true);
  });
});

describe('a start that ends', () => {
  const main = (state: object): Pod =>
    startedPod({ phase: 'Running', containerStatuses: [{ name: 'main', image: 'x', ...state }] } as never);

  async function ending(pod: Pod, options: { simulated?: boolean } = {}) {
    const seen: LogSubject[] = [];
    const reading = Promise.withResolvers<void>();
    const world = controllerWorld();
    const clock = fakeClock();
    const keep = (one: LogSubject): Promise<void> => {
      seen.push(one);
      return reading.promise;
    };
    world.deps.logs = new LogTakes({ keep, clock, log });
    const claim = claimOn('n', options.simulated === true ? { simulated: true } : {});
    const status = { claim, incarnation: 1, podName: 'one-1', podUid: 'pod-1' };
    world.instances.upsert(held(gpuInstance('one', { powerState: 'Stopped' }, status)));
    world.pods.upsert(pod);
    const deletes = () => world.writes.filter((write) => /delete/i.test(JSON.stringify(write))).length;
    const reconcile = (): Promise<unknown> => world.reconcile('one').catch((error: unknown) => error);
    await reconcile();
    return { ...world, clock, deletes, reading, again: reconcile, seen };
  }

  it('has its ending in the status, then its log kept, and then no pod', async () => {
    const { again, deletes, instances, reading, seen } = await ending(main({ state: { running: {} } }));
    expect(instances.store.get('default/one')?.status?.ending?.reason).toBe('Stopped');
    expect([seen.length, deletes()]).toEqual([1, 0]);
    await again();
    expect(deletes()).toBe(0);
    reading.resolve();
    await settle();
    await again();
    expect(deletes()).toBe(1);
  });

  it('waits for no log where there is none', async () => {
    const waiting = await ending(main({ state: { waiting: { reason: 'ContainerCreating' } } }));
    expect([waiting.seen.length, waiting.deletes()]).toEqual([0, 1]);
    const simulated = await ending(main({ state: { running: {} } }), { simulated: true });
    expect([simulated.seen.length, simulated.deletes()]).toEqual([0, 1]);
  });

  it('gives its GPU back after two seconds where the kubelet does not answer', async () => {
    const { again, clock, deletes } = await ending(main({ state: { running: {} } }));
    await clock.advance(2_000);
    await again();
    expect(deletes()).toBe(1);
  });
});

describe('old logs', () => {
  const kept = (uid: string, start: number, bytes = 100_000): LogMeta => ({
    metadata: {
      name: `l-${uid}-${start}`,
      labels: { [INSTANCE_UID_LABEL]: uid, [LOG_OF_START]: String(start) },
      annotations: { [LOG_BYTES]: String(bytes) },
      creationTimestamp: new Date(Date.UTC(2026, 0, 1) + start * 60_000).toISOString(),
    },
  });
  const names = (logs: readonly LogMeta[]): string[] => logs.map(({ metadata }) => metadata.name);

  it('give way, the oldest first, when a tenant has more than its bytes', () => {
    const logs = Array.from({ length: 400 }, (_, n) => kept(`u${n}`, n + 1));
    const surplus = surplusLogs(logs, () => true);
    const left = logs.filter((log) => !surplus.includes(log));
    expect(left.length).toBe(Math.floor(KEPT_BYTES / 101_024));
    expect(names(left)[0]).toBe(names(logs).at(-left.length));
  });

  it('give way to sixteen newer ones of their instance, so that one that crashes pushes out no other', () => {
    const logs = [kept('quiet', 1), ...Array.from({ length: 40 }, (_, n) => kept('crashing', n + 1, 10))];
    const surplus = new Set(surplusLogs(logs, () => true));
    expect(names(logs.filter((log) => !surplus.has(log))).length).toBe(17);
    expect(surplus.has(logs[0] as LogMeta)).toBe(false);
  });

  it('go with the history of their instance', () => {
    const logs = [kept('here', 1), kept('gone', 2)];
    expect(names(surplusLogs(logs, ({ metadata }) => metadata.name !== 'l-gone-2'))).toEqual(['l-gone-2']);
  });
});
