import pino from 'pino';
import { expect, test } from 'vitest';
import { SessionReports } from '../../../src/controllers/session-reports.ts';
import { AlreadyExistsError, NotFoundError, TransportError } from '../../../src/kube/errors.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import type { Lease, ObjectRef } from '../../../src/kube/types.ts';
import { LOST_AT, replicaKey, REPORTED_AT, reportText } from '../../../src/resources/activity-lease.ts';
import { fakeClock } from '../../support/fake-clock.ts';

type Role = 'ssh' | 'api';

/** A leader that looks at the Leases of an API server, which the test fills and may cut off. */
function world(leases: Role[] = ['ssh', 'api']) {
  const clock = fakeClock();
  const stored = new Map<string, Record<string, string>>(leases.map((role) => [`berth-activity-${role}`, {}]));
  let isCut = false;
  function answer(name: string): Promise<Lease> {
    const annotations = stored.get(name);
    if (isCut) return Promise.reject(new TransportError({ message: 'cut', status: 0, reason: 'cut' }));
    if (annotations === undefined)
      return Promise.reject(new NotFoundError({ message: name, status: 404, reason: 'NotFound' }));
    return Promise.resolve({ metadata: { name, annotations: { ...annotations } } });
  }
  const client = {
    get: (_type: unknown, { name }: ObjectRef) => answer(name),
    create: (_type: unknown, { metadata: { name } }: Lease) => {
      if (stored.has(name)) throw new AlreadyExistsError({ message: name, status: 409, reason: 'AlreadyExists' });
      stored.set(name, {});
      return answer(name);
    },
    patch: (
      _type: unknown,
      { name }: ObjectRef,
      body: { metadata: { annotations: Record<string, string | null> } },
    ) => {
      const annotations = { ...stored.get(name) };
      for (const [key, value] of Object.entries(body.metadata.annotations)) {
        if (value === null) delete annotations[key];
        else annotations[key] = value;
      }
      stored.set(name, annotations);
      return answer(name);
    },
  } as unknown as KubeClient;
  const begin = clock.now();
  const at = (seconds: number): number => begin + seconds * 1000;
  const stop = new AbortController();
  const reports = new SessionReports({ client, namespace: 'berth', clock, log: pino({ level: 'silent' }) });
  const running = reports.run({ stop: stop.signal, abort: stop.signal });
  return {
    clock,
    reports,
    at,
    stored,
    cut: (now: boolean) => (isCut = now),
    report: (role: Role, id: string, { since, until }: { since: number; until: number }): void => {
      const text = reportText({ since: at(since), until: at(until), version: String(until) });
      const name = `berth-activity-${role}`;
      stored.set(name, {
        ...stored.get(name),
        [replicaKey(id)]: text,
        [REPORTED_AT]: new Date(at(until)).toISOString(),
      });
    },
    leave: (role: Role, id: string): void => {
      const { [replicaKey(id)]: _gone, ...rest } = stored.get(`berth-activity-${role}`) ?? {};
      stored.set(`berth-activity-${role}`, rest);
    },
    stop: () => (stop.abort(), running),
  };
}

test('before the first look nobody is idle', async () => {
  const { reports, stop } = world();
  expect(reports.evidence()?.until).toBe(-Infinity);
  await stop();
});

test('what all replicas have written counts, and the oldest of the ssh role says since when one could log in', async () => {
  const { reports, report, leave, clock, at, stop } = world();
  report('ssh', 'a', { since: -100, until: 5 });
  report('ssh', 'b', { since: -50, until: 0 });
  report('api', 'c', { since: -10, until: -2 });
  await clock.advance(10_000);
  expect(reports.evidence()).toEqual({ since: at(-100), until: at(-2), versions: ['-2', '5', '0'] });
  leave('ssh', 'a');
  report('ssh', 'd', { since: 8, until: 8 });
  await clock.advance(10_000);
  expect(reports.evidence()?.since).toBe(at(-50));
  await stop();
});

test('a replica that goes without a word is waited for, and then idle times begin anew', async () => {
  const { reports, report, clock, at, stored, stop } = world();
  report('ssh', 'lost', { since: -100, until: 0 });
  let seconds = 0;
  for (; seconds < 290; seconds += 10) {
    report('ssh', 'kept', { since: -200, until: seconds });
    await clock.advance(10_000);
    expect(reports.evidence()?.until).toBe(at(0));
  }
  for (const end = seconds + 30; seconds < end; seconds += 10) {
    report('ssh', 'kept', { since: -200, until: seconds });
    await clock.advance(10_000);
  }
  const lostAt = Date.parse(stored.get('berth-activity-ssh')?.[LOST_AT] ?? '');
  expect(lostAt).toBeGreaterThanOrEqual(at(290));
  expect(reports.evidence()).toMatchObject({ since: lostAt, until: at(seconds - 10) });
  await stop();
});

test('while the API server is away no replica is given up, however long that is', async () => {
  const { reports, report, clock, at, cut, stored, stop } = world();
  report('ssh', 'a', { since: -100, until: 0 });
  await clock.advance(10_000);
  cut(true);
  await clock.advance(3_600_000);
  cut(false);
  await clock.advance(10_000);
  expect(reports.evidence()).toMatchObject({ since: at(-100), until: at(0) });
  expect(stored.get('berth-activity-ssh')).not.toHaveProperty([LOST_AT]);
  await stop();
});

test('where the ssh role never reported, nobody is waited for after a minute; where it did, for ever', async () => {
  const never = world([]);
  await never.clock.advance(40_000);
  expect(never.reports.evidence()?.until).toBe(-Infinity);
  await never.clock.advance(30_000);
  expect(never.reports.evidence()).toBeUndefined();
  expect([...never.stored.keys()]).toEqual(['berth-activity-api', 'berth-activity-ssh']);
  await never.stop();
  const gone = world();
  gone.report('ssh', 'a', { since: -100, until: 0 });
  gone.leave('ssh', 'a');
  await gone.clock.advance(3_600_000);
  expect(gone.reports.evidence()?.until).toBe(-Infinity);
  gone.report('ssh', 'b', { since: 3600, until: 3600 });
  await gone.clock.advance(10_000);
  expect(gone.reports.evidence()).toMatchObject({ since: gone.at(3600), until: gone.at(3600) });
  await gone.stop();
});

test('a report that cannot be read says that nothing is written', async () => {
  const { reports, clock, stored, stop } = world();
  stored.set('berth-activity-ssh', { [replicaKey('a')]: 'no JSON' });
  await clock.advance(10_000);
  expect(reports.evidence()).toEqual({ since: 0, until: 0, versions: [''] });
  await stop();
});
