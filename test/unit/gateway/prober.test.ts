import { describe, expect, it, vi } from 'vitest';
import { Prober } from '../../../src/gateway/discovery/prober.ts';
import type { Probe, Target } from '../../../src/gateway/discovery/types.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { probeOf } from '../../support/probe.ts';

const FOUND = probeOf({ models: [{ id: 'tiny' }] });

function target(key: string, more: Partial<Target> = {}, namespace = 'a'): Target {
  const server = { namespace, name: 's', uid: 'u', aliases: [], problems: [] };
  return { key, place: key, origin: `http://${key}`, restarts: '1', server, available: true, ...more };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

function setup(answer: (target: Target, signal: AbortSignal) => Promise<Probe> = () => Promise.resolve(FOUND)) {
  const clock = fakeClock();
  const probed = vi.fn(answer);
  const prober = new Prober({
    probe: probed,
    changed: () => {},
    failed: () => {},
    clock,
    random: () => 0.5,
  });
  return { clock, probed, prober };
}

describe('Prober', () => {
  it('probes a target once, and again after a minute', async () => {
    const { prober, probed, clock } = setup();
    prober.sync([target('a')]);
    await settle();
    prober.sync([target('a')]);
    prober.tick();
    await settle();
    expect(probed).toHaveBeenCalledTimes(1);
    expect(prober.get('a')).toEqual(FOUND);
    clock.stall(60_000);
    prober.tick();
    expect(probed).toHaveBeenCalledTimes(2);
  });

  it('waits for a target to be available', () => {
    const { prober, probed } = setup();
    prober.sync([target('a', { available: false })]);
    expect(probed).not.toHaveBeenCalled();
    prober.sync([target('a')]);
    expect(probed).toHaveBeenCalledTimes(1);
  });

  it('probes again at once when a container restarted or the annotations changed', async () => {
    const { prober, probed } = setup();
    prober.sync([target('a')]);
    await settle();
    prober.sync([target('a', { restarts: '2' })]);
    expect(probed).toHaveBeenCalledTimes(2);
  });

  it('keeps what it knows and backs off from 0.5 s to 30 s while probes fail', async () => {
    let broken = false;
    const { prober, probed, clock } = setup(() => (broken ? Promise.reject(new Error('no')) : Promise.resolve(FOUND)));
    prober.sync([target('a')]);
    await settle();
    broken = true;
    clock.stall(60_000);
    const waits: number[] = [];
    let last = clock.monotonic();
    for (let calls = probed.mock.calls.length; waits.length < 9; clock.stall(250)) {
      prober.tick();
      await settle();
      if (probed.mock.calls.length === calls) continue;
      calls = probed.mock.calls.length;
      waits.push(clock.monotonic() - last);
      last = clock.monotonic();
    }
    expect(waits).toEqual([0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    expect(prober.get('a')).toEqual(FOUND);
  });

  it('runs at most eight at once and gets to every target', async () => {
    const waiting: (() => void)[] = [];
    const { prober, probed } = setup(() => new Promise((resolve) => waiting.push(() => resolve(FOUND))));
    prober.sync(Array.from({ length: 20 }, (_, index) => target(`t${index}`)));
    expect(probed).toHaveBeenCalledTimes(8);
    while (waiting.length > 0) {
      for (const finish of waiting.splice(0)) finish();
      await settle();
      expect(waiting.length).toBeLessThanOrEqual(8);
    }
    expect(probed).toHaveBeenCalledTimes(20);
  });

  it('gets to targets behind many that hang', async () => {
    const hung: (() => void)[] = [];
    const { prober, probed, clock } = setup(({ key }) =>
      key === 'last' ? Promise.resolve(FOUND) : new Promise((_, reject) => hung.push(() => reject(new Error('no')))),
    );
    prober.sync([...Array.from({ length: 16 }, (_, index) => target(`t${index}`)), target('last')]);
    // Failed targets are due again before the next ones fail.
    for (let count = 0; count < 3; count += 1) {
      clock.stall(20_000);
      for (const fail of hung.splice(0)) fail();
      await settle();
    }
    expect(probed.mock.calls.map(([{ key }]) => key)).toContain('last');
    prober.stop();
  });

  it('gets to targets behind many that hang and change all the time', async () => {
    const hung: (() => void)[] = [];
    const no = new Error('no');
    const { prober, probed, clock } = setup(({ key }) =>
      key === 'loads' ? Promise.reject(no) : new Promise((_, reject) => hung.push(() => reject(no))),
    );
    const round = (count: number): Target[] => {
      const { server } = target('');
      const changed = { server: { ...server, prefix: `/${count}` } };
      return [target('loads'), ...Array.from({ length: 16 }, (_, index) => target(`t${index}`, changed))];
    };
    for (let count = 0; count < 20; count += 1) {
      clock.stall(2500);
      prober.sync(round(count));
      clock.stall(2500);
      for (const fail of hung.splice(0)) fail();
      await settle();
    }
    // 0.5 s to 30 s after each failure, and a turn behind those that were due before.
    expect(probed.mock.calls.filter(([{ key }]) => key === 'loads').length).toBeGreaterThan(4);
    prober.stop();
  });

  it('gets to the target of a namespace at once beside many of others that hang', () => {
    const { prober, probed } = setup(() => new Promise(() => undefined));
    const hanging = ['b', 'c', 'd', 'e'].flatMap((namespace) =>
      Array.from({ length: 200 }, (_, index) => target(`${namespace}${index}`, {}, namespace)),
    );
    prober.sync(hanging);
    prober.sync([...hanging, target('honest')]);
    expect(probed.mock.calls.map(([{ key }]) => key)).toContain('honest');
    prober.stop();
  });

  it('ends a probe that asks one slow question after the other', async () => {
    const { prober, probed, clock } = setup();
    probed.mockImplementation(
      (_target, signal) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('late')))),
    );
    prober.sync([target('a')]);
    await clock.advance(14_000);
    prober.tick();
    expect(probed).toHaveBeenCalledTimes(1);
    await clock.advance(3000);
    prober.tick();
    expect(probed).toHaveBeenCalledTimes(2);
    prober.stop();
  });

  it('follows the few targets of a namespace beside the many of another', async () => {
    const { prober } = setup();
    const many = Array.from({ length: 5000 }, (_, index) => target(`t${index}`, { available: false }, 'many'));
    expect(prober.sync([...many, target('few', {}, 'z')])).toBe(5001 - 4096);
    await settle();
    expect(prober.get('few')).toEqual(FOUND);
    prober.stop();
  });

  it('forgets targets that are gone, follows no more than 4096 and returns how many it ignores', async () => {
    const { prober } = setup();
    prober.sync([target('a')]);
    await settle();
    expect(prober.sync(Array.from({ length: 4100 }, (_, index) => target(`t${index}`)))).toBe(4);
    expect(prober.get('a')).toBeUndefined();
    prober.stop();
  });
});
