import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decide,
  DRAIN_MS,
  type Memory,
  remember,
  type Step,
  type View,
} from '../../../src/controllers/model-servers/decide.ts';

const IDLE = 300_000;

function view(given: Partial<View> = {}): View {
  return { renewal: 'r1', asleepAfter: undefined, replicas: 1, minimum: 1, idleMs: IDLE, ...given };
}

function seen(given: Partial<Memory> = {}): Memory {
  return { renewal: 'r1', since: 0, sawChange: true, ...given };
}

describe('a model server', () => {
  const CASES: [name: string, given: View, memory: Memory, now: number, step: Step][] = [
    ['is marked after the time without calls', view(), seen(), IDLE, { kind: 'mark' }],
    ['is looked at again before', view(), seen(), IDLE - 5, { kind: 'wait', ms: 5 }],
    ['keeps more replicas than its minimum', view({ replicas: 2 }), seen(), IDLE, { kind: 'wait', ms: 60_000 }],
    ['starts after a new renewal', view({ replicas: 0, minimum: 3 }), seen(), 9, { kind: 'scale', replicas: 3 }],
    ['does not start after an old one', view({ replicas: 0 }), seen(), 60_000, { kind: 'mark' }],
    ['nor after one of unknown age', view({ replicas: 0 }), seen({ sawChange: false }), 0, { kind: 'mark' }],
    ['stays at zero', view({ replicas: 0, asleepAfter: 'r1' }), seen(), 0, { kind: 'wait', ms: 60_000 }],
    [
      'gets time between mark and zero',
      view({ asleepAfter: 'r1' }),
      seen({ markedAt: 5 }),
      DRAIN_MS,
      { kind: 'wait', ms: 5 },
    ],
    ['then goes to zero', view({ asleepAfter: 'r1' }), seen({ markedAt: 0 }), DRAIN_MS, { kind: 'scale', replicas: 0 }],
    ['does not, after a new renewal', view({ asleepAfter: 'r0' }), seen(), DRAIN_MS, { kind: 'wait', ms: 60_000 }],
    ['is left to an operator who raised it', view({ asleepAfter: 'r1' }), seen(), 0, { kind: 'unmark' }],
    [
      'is left to an autoscaler that raised it meanwhile',
      view({ asleepAfter: 'r1', replicas: 2 }),
      seen({ markedAt: 0 }),
      DRAIN_MS,
      { kind: 'unmark' },
    ],
  ];

  it.each(CASES.map(([name, given, memory, now, step]) => ({ name, given, memory, now, step })))(
    '$name',
    ({ given, memory, now, step }) => {
      expect(decide(given, memory, now)).toEqual(step);
    },
  );

  it('is as young as its last renewal, but the first that a leader sees may be old', () => {
    const first = remember(undefined, 'r1', 10);
    expect(first).toEqual({ renewal: 'r1', since: 10, sawChange: false });
    expect(remember(first, 'r1', 20)).toBe(first);
    expect(remember({ ...first, markedAt: 15 }, 'r2', 20)).toEqual({ renewal: 'r2', since: 20, sawChange: true });
  });
});

// One workload, two controllers of which any may believe that it leads, and two replicas of the gateway. Every write of
// the controllers is conditional on what it read, as in the real one. Any order of steps may happen; time passes between.

const TICK = 5000;

class World {
  now = 0;
  replicas = 1;
  scaledUp = 0;
  /** Versions of the Lease and of the workload, for conditional writes. */
  lease = { renewal: 'r0', asleepAfter: undefined as string | undefined, version: 0 };
  version = 0;
  readonly memories: (Memory | undefined)[] = [undefined, undefined];
  /** Whether the replica of the gateway has a call, since when, and when it renewed last. */
  readonly gateways = [
    { hasCall: false, begunAt: 0, renewedAt: -TICK },
    { hasCall: false, begunAt: 0, renewedAt: -TICK },
  ];
  /** What a controller has read and not acted on yet. */
  readonly read: ({ lease: World['lease']; replicas: number; version: number } | undefined)[] = [undefined, undefined];
  /** Scaled to zero while a replica of the gateway had had a call for long enough to say so. */
  cut = 0;
  #renewals = 0;

  /** Replicas with calls renew every 5 s and at the first call; time does not pass them by. */
  pass(ms: number): void {
    for (let left = ms; left > 0; left -= TICK) {
      this.now += Math.min(TICK, left);
      for (const gateway of this.gateways)
        if (gateway.hasCall && this.now - gateway.renewedAt >= TICK) this.#renew(gateway);
    }
  }

  call(index: number): void {
    const gateway = this.gateways[index];
    if (gateway === undefined || gateway.hasCall) return;
    gateway.hasCall = true;
    gateway.begunAt = this.now;
    if (this.lease.asleepAfter === this.lease.renewal || this.replicas === 0) this.#renew(gateway);
  }

  hangUp(index: number): void {
    const gateway = this.gateways[index];
    if (gateway !== undefined) gateway.hasCall = false;
  }

  look(index: number): void {
    this.read[index] = { lease: { ...this.lease }, replicas: this.replicas, version: this.version };
  }

  act(index: number): void {
    const read = this.read[index];
    if (read === undefined) return;
    this.read[index] = undefined;
    const { lease, replicas, version } = read;
    const memory = remember(this.memories[index], lease.renewal, this.now);
    this.memories[index] = memory;
    if (lease.asleepAfter === lease.renewal && replicas === 0) delete memory.markedAt;
    const given = { renewal: lease.renewal, asleepAfter: lease.asleepAfter, replicas, minimum: 1, idleMs: IDLE };
    const step = decide(given, memory, this.now);
    if (step.kind === 'mark' && this.#note(lease, lease.renewal) && replicas > 0) memory.markedAt = this.now;
    if (step.kind === 'unmark' && this.#note(lease, undefined)) {
      memory.since = this.now;
      delete memory.markedAt;
    }
    if (step.kind === 'scale') this.#scale(step.replicas, version);
  }

  restart(index: number): void {
    this.memories[index] = undefined;
    this.read[index] = undefined;
  }

  #renew(gateway: { renewedAt: number }): void {
    gateway.renewedAt = this.now;
    this.#renewals += 1;
    this.lease = { ...this.lease, renewal: `r${this.#renewals}`, version: this.lease.version + 1 };
  }

  #note(read: World['lease'], asleepAfter: string | undefined): boolean {
    if (read.version !== this.lease.version) return false;
    this.lease = { ...this.lease, asleepAfter, version: read.version + 1 };
    return true;
  }

  #scale(replicas: number, version: number): void {
    // Before zero the controller reads the Lease again.
    if (replicas === 0 && this.lease.asleepAfter !== this.lease.renewal) return;
    if (version !== this.version) return;
    if (replicas > 0 && this.replicas === 0) this.scaledUp += 1;
    if (replicas === 0 && this.gateways.some(({ hasCall, begunAt }) => hasCall && this.now - begunAt > 2 * TICK))
      this.cut += 1;
    this.replicas = replicas;
    this.version += 1;
  }

  /** One controller works and everything else is quiet. */
  settle(index: number): void {
    for (let round = 0; round < 8; round += 1) {
      this.look(index);
      this.act(index);
      this.pass(1000);
    }
  }
}

const index = fc.constantFrom(0, 1);
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constantFrom('call', 'hangUp', 'look', 'act', 'restart'), index }),
    fc.record({ kind: fc.constant('pass'), ms: fc.constantFrom(100, TICK, DRAIN_MS, 60_000, IDLE) }),
  ),
  { maxLength: 60 },
);

describe('in any order of calls, ends of calls, reads, writes, restarts and time', () => {
  function play(list: readonly ({ kind: string } & Partial<{ index: number; ms: number }>)[]): World {
    const world = new World();
    for (const { kind, index = 0, ms = 0 } of list) {
      if (kind === 'call') world.call(index);
      else if (kind === 'hangUp') world.hangUp(index);
      else if (kind === 'look') world.look(index);
      else if (kind === 'act') world.act(index);
      else if (kind === 'restart') world.restart(index);
      else world.pass(ms);
    }
    return world;
  }

  it('no workload goes to zero under a replica of the gateway that has calls', () => {
    const check = (list: Parameters<typeof play>[0]): void => {
      expect(play(list).cut).toBe(0);
    };
    fc.assert(fc.property(steps, check), { numRuns: 3000 });
  });

  it('a waiting call gets its server, by one scale-up', () => {
    fc.assert(
      fc.property(steps, index, (list, leader) => {
        const world = play(list);
        const before = world.scaledUp;
        const wasZero = world.replicas === 0;
        world.call(0);
        world.call(1);
        world.settle(leader);
        world.settle(1 - leader);
        expect(world.replicas).toBe(1);
        expect(world.scaledUp - before).toBeLessThanOrEqual(wasZero ? 1 : 0);
      }),
      { numRuns: 1000 },
    );
  });

  it('a workload without calls goes to zero', () => {
    fc.assert(
      fc.property(steps, index, (list, leader) => {
        const world = play(list);
        world.hangUp(0);
        world.hangUp(1);
        for (let round = 0; round < 4; round += 1) {
          world.settle(leader);
          world.pass(IDLE);
        }
        expect(world.replicas).toBe(0);
      }),
      { numRuns: 1000 },
    );
  });
});
