import { beforeEach, describe, expect, it } from 'vitest';
import { ByteTurns, PacedSource, PIECE_BYTES, type Turn } from '../../../src/lib/byte-turns.ts';
import { type FakeClock, fakeClock } from '../../support/fake-clock.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

let clock: FakeClock;
let turns: ByteTurns;
let passed: Record<string, number>;

beforeEach(() => {
  clock = fakeClock();
  turns = new ByteTurns(clock);
  passed = {};
});

/** Always has a piece that waits, on each of its streams. */
function flood(tenant: string, streams: number, bytes = 64 * KIB): void {
  const turn = turns.of(tenant);
  for (let stream = 0; stream < streams; stream += 1) {
    const next = (): void =>
      turn.pass(bytes, () => {
        passed[tenant] = (passed[tenant] ?? 0) + bytes;
        // A stream has its next piece after it was read from the network.
        setImmediate(next);
      });
    next();
  }
}

async function rounds(count: number): Promise<void> {
  for (let round = 0; round < count; round += 1) await new Promise((resolve) => setImmediate(resolve));
}

describe('turns of bytes', () => {
  it('give a tenant with one stream as much as one with a thousand', async () => {
    flood('greedy', 1000);
    flood('honest', 1, 128 * KIB);
    await rounds(200);
    expect((passed['honest'] ?? 0) / (passed['greedy'] ?? 0)).toBeGreaterThan(0.45);
  });

  it('keep rounds short for all others, also while a tenant is alone, and however many they are', async () => {
    flood('greedy', 1000);
    await rounds(1);
    const before = passed['greedy'] ?? 0;
    await rounds(10);
    expect(((passed['greedy'] ?? 0) - before) / 10).toBeLessThanOrEqual(1.25 * MIB);
    for (let tenant = 0; tenant < 63; tenant += 1) flood(`t${tenant}`, 20);
    await rounds(10);
    const all = (): number => Object.values(passed).reduce((sum, bytes) => sum + bytes, 0);
    const then = all();
    await rounds(32);
    expect((all() - then) / 32).toBeLessThanOrEqual(2 * MIB);
  });

  it('let what is small pass at once beside a flood', async () => {
    flood('greedy', 1000);
    await rounds(10);
    let isPassed = false;
    turns.of('honest').pass(100, () => (isPassed = true));
    expect(isPassed).toBe(true);
  });

  it('cost one who is alone nothing: the next round follows at once, whatever the last had', async () => {
    flood('alone', 16, MIB);
    await rounds(100);
    expect(passed['alone']).toBeGreaterThan(90 * MIB);
  });

  it('forget who passes nothing, and then nothing more is to do', async () => {
    turns.of('a').pass(MIB, () => undefined);
    turns.of('b').pass(MIB, () => undefined);
    await rounds(20);
    clock.stall(101);
    // Alone again: a whole part, where two would have an eighth of it.
    let count = 0;
    const one = turns.of('c');
    one.pass(1, () => undefined);
    await rounds(2);
    for (let piece = 0; piece < 8; piece += 1) one.pass(128 * KIB, () => (count += 1));
    expect(count).toBe(8);
  });

  it('count work that is no byte, before and after', async () => {
    const turn = turns.of('a');
    flood('b', 1, 1);
    turn.count(10 * 128 * KIB);
    let isPassed = false;
    turn.pass(1, () => (isPassed = true));
    await rounds(9);
    expect(isPassed).toBe(false);
    await rounds(3);
    expect(isPassed).toBe(true);
  });
});

describe('a source that waits for its turn', () => {
  it('pauses until what it gave has been passed, and is not told when it never waits', () => {
    const waiting: { bytes: number; goOn: () => void }[] = [];
    let counted = 0;
    let isFree = true;
    const turn: Turn = {
      pass: (bytes, goOn) => (isFree ? goOn() : void waiting.push({ bytes, goOn })),
      count: (bytes) => (counted += bytes),
    };
    const told: boolean[] = [];
    const source = new PacedSource(turn, (isWaiting) => told.push(isWaiting));
    source.took(5);
    expect([told, source.isWaiting]).toEqual([[], false]);
    isFree = false;
    source.took(5);
    // What had been read already.
    source.took(7);
    expect([told, source.isWaiting, counted]).toEqual([[true], true, 7 + PIECE_BYTES]);
    expect(waiting.map(({ bytes }) => bytes)).toEqual([5 + PIECE_BYTES]);
    waiting[0]?.goOn();
    expect([told, source.isWaiting]).toEqual([[true, false], false]);
  });
});
