import { describe, expect, it } from 'vitest';
import { Window, workOf } from '../../../src/gateway/balance/window.ts';

/** An engine that works on so many at once, and processes of the gateway that send as much as their windows let them. */
function world(batch: number, ...demands: number[]) {
  const processes = demands.map((demand) => ({ window: new Window(), demand, own: 0 }));
  const round = (): { running: number; waiting: number } => {
    for (const one of processes) one.own = Math.min(one.demand, Math.max(one.own, one.window.size));
    const all = processes.reduce((sum, { own }) => sum + own, 0);
    const work = { running: Math.min(all, batch), waiting: Math.max(0, all - batch) };
    for (const { window, own } of processes) window.note(work, own);
    // All answers end before the next look.
    for (const one of processes) one.own = 0;
    return work;
  };
  return { processes, rounds: (count: number) => Array.from({ length: count }, round).at(-1) };
}

describe('the window of a server', () => {
  it('settles at what it works on, and a few that wait', () => {
    const { rounds } = world(200, 1000);
    for (let count = 0; count < 20; count += 1) {
      const work = rounds(20);
      expect(work?.running).toBeGreaterThanOrEqual(190);
      expect(work?.waiting).toBeLessThanOrEqual(60);
    }
  });

  it('is small for a server that does four at once', () => {
    const { processes, rounds } = world(4, 1000);
    rounds(20);
    expect(processes[0]?.window.size).toBeLessThanOrEqual(7);
    expect(processes[0]?.window.size).toBeGreaterThanOrEqual(4);
  });

  it('grows as far as a large server takes calls', () => {
    const { processes, rounds } = world(2000, 1500);
    rounds(8);
    expect(processes[0]?.window.size).toBeGreaterThanOrEqual(1500);
  });

  it('leaves to each process its part', () => {
    const { processes, rounds } = world(120, 1000, 1000, 1000);
    rounds(100);
    const sizes = processes.map(({ window }) => window.size);
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(180);
    for (const size of sizes) expect(size).toBeGreaterThan(20);
  });

  it('stays while calls wait for a moment only', () => {
    const window = new Window();
    const before = window.size;
    for (let count = 0; count < 10; count += 1) {
      window.note({ running: 2, waiting: 6 }, 8);
      window.note({ running: 8, waiting: 0 }, 8);
    }
    expect(window.size).toBe(before);
  });

  it('is never shut, so that the server can show that it has room', () => {
    const window = new Window();
    for (let count = 0; count < 3; count += 1) window.note({ running: 10, waiting: 50 }, 0);
    expect(window.size).toBe(1);
    window.note({ running: 1, waiting: 0 }, 1);
    expect(window.size).toBe(2);
  });
});

describe('what a server without metrics has to do', () => {
  const flight = (begunAt: number, answered: boolean, isStream = true) => ({
    begunAt,
    answered,
    isStream,
    promptTokens: 1000,
  });

  it('is seen in its streams: those without a byte wait while others have theirs', () => {
    const flights = [flight(0, true), flight(0, false), flight(9000, false), flight(0, false, false)];
    expect(workOf(flights, 10_000)).toEqual({ running: 3, waiting: 1 });
  });

  it('is not a queue while none of them has a byte: the server may load its weights', () => {
    expect(workOf([flight(0, false), flight(0, false)], 60_000)).toEqual({ running: 2, waiting: 0 });
  });
});
