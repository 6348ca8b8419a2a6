import { describe, expect, it } from 'vitest';
import { FIRST_WINDOW, LARGEST_WINDOW } from '../../../src/direct/credited-output.ts';
import { DirectLink } from '../../../src/direct/direct-link.ts';
import { FROM_POD, headerOf, TO_POD } from '../../../src/direct/frames.ts';
import { NO_TURN } from '../../../src/lib/byte-turns.ts';
import { FairBytes } from '../../../src/lib/shares.ts';
import { DirectPod } from '../../support/direct-pod.ts';
import { fakeClock, settle, type FakeClock } from '../../support/fake-clock.ts';

const MIB = 1024 * 1024;
const PROGRAM = { argv: ['sh'], script: 'true\n' };

/** `room` is what the tenant has for wide windows. */
function linked(room = 0): { pod: DirectPod; link: DirectLink; clock: FakeClock; shared: FairBytes } {
  const pod = new DirectPod();
  const clock = fakeClock();
  const shared = new FairBytes(room);
  return { pod, clock, shared, link: new DirectLink(pod.wire, clock, { portion: shared.of('team'), turn: NO_TURN }) };
}

function granted(pod: DirectPod): number {
  return pod.of(TO_POD.credit).reduce((sum, { payload }) => sum + payload.readUInt32BE(1), 0);
}

describe('a link', () => {
  it('carries input, outputs and the exit status of several channels', async () => {
    const { pod, link } = linked();
    const [one, two] = [link.open(PROGRAM), link.open(PROGRAM)];
    one.stdin.end('to one');
    await settle();
    expect(pod.of(TO_POD.open).map(({ channel }) => channel)).toEqual([1, 2]);
    expect(pod.of(TO_POD.input)).toMatchObject([{ channel: 1, payload: Buffer.from('to one') }]);
    expect(pod.of(TO_POD.end)).toMatchObject([{ channel: 1 }]);
    pod.sendNumber(FROM_POD.opened, 2, 77);
    pod.send(FROM_POD.stderr, 2, Buffer.from('err'));
    pod.send(FROM_POD.stdout, 2, Buffer.from('out'));
    pod.sendNumber(FROM_POD.exit, 2, 7);
    expect(await two.opened).toBe(77);
    expect(await two.exit).toEqual({ kind: 'exited', code: 7 });
    expect([String(await two.stdout.toArray()), String(await two.stderr.toArray())]).toEqual(['out', 'err']);
    pod.hangUp();
    expect(await one.exit).toEqual({ kind: 'lost', message: 'The instance closed it.' });
    expect(link.wasLost).toBe(true);
  });

  it('sends no more than the pod takes, and goes on when it takes more', async () => {
    const { pod, link } = linked();
    const { stdin } = link.open(PROGRAM);
    const sent = (): number => pod.of(TO_POD.input).reduce((sum, { payload }) => sum + payload.length, 0);
    for (let count = 0; count < 40; count += 1) stdin.write(Buffer.alloc(64 * 1024));
    await settle();
    await settle();
    expect(sent()).toBeLessThanOrEqual(MIB);
    expect(sent()).toBeGreaterThan(MIB - 128 * 1024);
    pod.sendNumber(FROM_POD.inputCredit, 1, 512 * 1024);
    await settle();
    await settle();
    expect(sent()).toBeGreaterThan(MIB + 384 * 1024);
  });

  it('lets a pod send as much as is read, and no more', async () => {
    const { pod, link } = linked();
    const { stdout } = link.open(PROGRAM);
    const piece = Buffer.alloc(64 * 1024);
    for (let count = 0; count < FIRST_WINDOW / piece.length; count += 1) pod.send(FROM_POD.stdout, 1, piece);
    await settle();
    expect(granted(pod)).toBe(0);
    stdout.read(piece.length);
    await settle();
    expect(granted(pod)).toBeLessThanOrEqual(piece.length);
    while (stdout.read() !== null);
    await settle();
    expect(granted(pod)).toBe(FIRST_WINDOW);
  });

  it.each(['flows', 'is read bit by bit'])('never stalls an output that %s', async (how) => {
    const { pod, link } = linked();
    const { stdout } = link.open(PROGRAM);
    let read = 0;
    const took = (chunk: Buffer | null): void => void (read += chunk?.length ?? 0);
    if (how === 'flows') stdout.on('data', took);
    let allowed = FIRST_WINDOW;
    let seen = 0;
    for (let total = 0; total < 4 * MIB;) {
      const size = Math.min(allowed, 10_000);
      expect(size).toBeGreaterThan(0);
      pod.send(FROM_POD.stdout, 1, Buffer.alloc(size));
      total += size;
      allowed -= size;
      await settle();
      if (how !== 'flows' && allowed === 0) {
        for (let left = FIRST_WINDOW; left > 0; left -= 15_000)
          took(stdout.read(Math.min(15_000, left)) as Buffer | null);
        await settle();
      }
      allowed += granted(pod) - seen;
      seen = granted(pod);
    }
    expect(read).toBeGreaterThan(4 * MIB - FIRST_WINDOW);
  });

  it.each([
    ['as far as there is room', 64 * MIB, LARGEST_WINDOW],
    ['and not without it', 0, FIRST_WINDOW],
  ])('widens the window of an output that flows, %s, and gives it back', async (_what, room, widest) => {
    const { pod, link, shared } = linked(room);
    const { stdout, exit } = link.open(PROGRAM);
    let read = 0;
    stdout.on('data', (chunk: Buffer) => (read += chunk.length));
    for (let total = 0; total < 16 * MIB; total += 64 * 1024) {
      pod.send(FROM_POD.stdout, 1, Buffer.alloc(64 * 1024));
      await settle();
    }
    const ahead = FIRST_WINDOW + granted(pod) - read;
    expect(ahead).toBeLessThanOrEqual(widest);
    expect(ahead).toBeGreaterThan(widest * 0.7);
    expect(room / 2 - shared.of('team').left()).toBe(widest - FIRST_WINDOW);
    pod.sendNumber(FROM_POD.exit, 1, 0);
    await exit;
    expect(shared.of('team').left()).toBe(room / 2);
  });

  it.each([
    ['more than it may', (pod: DirectPod) => pod.send(FROM_POD.stdout, 1, Buffer.alloc(FIRST_WINDOW + 1))],
    ['for a channel that nobody opened', (pod: DirectPod) => pod.send(FROM_POD.stdout, 9, Buffer.alloc(1))],
    ['a frame that no helper sends', (pod: DirectPod) => pod.send(99, 1, Buffer.alloc(4))],
    ['credit that it was not sent for', (pod: DirectPod) => pod.sendNumber(FROM_POD.inputCredit, 1, 1)],
    [
      'answers without an end',
      (pod: DirectPod) => {
        for (let count = 0; count < 2; count += 1) pod.send(FROM_POD.pong, 0);
      },
    ],
    [
      'frames without an end',
      (pod: DirectPod) => {
        for (let count = 0; count < 10; count += 1) pod.send(FROM_POD.deaf, 1);
      },
    ],
    ['an output of no bytes', (pod: DirectPod) => pod.send(FROM_POD.stdout, 1)],
    ['an endless reason', (pod: DirectPod) => pod.raw(headerOf(FROM_POD.failed, 1, 0xffffff))],
  ])('ends when the pod sends %s', async (_what, act) => {
    const { pod, link } = linked();
    const { exit } = link.open(PROGRAM);
    act(pod);
    expect(await exit).toMatchObject({
      kind: 'lost',
      message: expect.stringContaining('broke the protocol') as string,
    });
    expect(link.isOpen).toBe(false);
    expect(pod.socket.destroyed).toBe(true);
  });

  it('drops what comes for a channel that was closed', async () => {
    const { pod, link } = linked();
    const channel = link.open(PROGRAM);
    channel.close();
    await settle();
    expect(pod.of(TO_POD.close)).toHaveLength(1);
    pod.send(FROM_POD.stdout, 1, Buffer.from('late'));
    pod.sendNumber(FROM_POD.exit, 1, 0);
    await settle();
    expect(await channel.exit).toMatchObject({ kind: 'lost' });
    expect(link.isOpen).toBe(true);
  });

  it('ends when the pod goes on with a channel that is over', async () => {
    const { pod, link } = linked();
    link.open(PROGRAM).close();
    await settle();
    for (let count = 0; count < 40 && link.isOpen; count += 1) {
      pod.send(FROM_POD.stdout, 1, Buffer.alloc(32 * 1024));
      await settle();
    }
    expect(link.isOpen).toBe(false);
  });

  it('notices a pod that vanished, and not one that is idle', async () => {
    const { pod, link, clock } = linked();
    const { exit } = link.open(PROGRAM);
    for (let count = 0; count < 5; count += 1) {
      await clock.advance(20_000);
      pod.send(FROM_POD.pong, 0);
      await settle();
    }
    expect(pod.of(TO_POD.ping)).toHaveLength(5);
    expect(link.isOpen).toBe(true);
    await clock.advance(40_000);
    expect(await exit).toEqual({ kind: 'lost', message: 'The instance stopped answering.' });
    expect(clock.pending).toBe(0);
  });

  it('that the gateway closes sends what waits first', async () => {
    const { pod, link } = linked();
    link.open(PROGRAM).stdin.write('last words');
    link.close();
    await settle();
    expect(pod.of(TO_POD.input)).toHaveLength(1);
    expect(link.wasLost).toBe(false);
  });
});
