import fc from 'fast-check';
import type { Connection, ServerChannel } from 'ssh2';
import { describe, expect, it } from 'vitest';
import { FairBytes } from '../../../src/lib/shares.ts';
import { FIRST_WINDOW, SHARED_WINDOW, Windows } from '../../../src/ssh/ssh2/windows.ts';

const MIB = 1024 * 1024;

/** Channels whose client sends all it may, and whose readers read what they are told to. */
function clientOf(count: number, portion = new FairBytes(Number.POSITIVE_INFINITY).of('team')) {
  const given = Array.from({ length: count }, () => FIRST_WINDOW);
  const adjusted = (id: number, amount: number): void => {
    given[id] = (given[id] ?? 0) + amount;
  };
  const protocol = { channelOpenConfirm: () => undefined, channelWindowAdjust: adjusted };
  const windows = new Windows({ _protocol: protocol } as unknown as Connection, portion);
  const channels = given.map((_, id) => ({ readableLength: 0, outgoing: { id, state: 'open' } }));
  const followed = channels.map((channel) => windows.follow(channel as unknown as ServerChannel));
  const waits = (id: number): number => (given[id] ?? 0) - (followed[id]?.bytes ?? 0);
  return {
    windows,
    channels,
    followed,
    waits,
    all: () => given.reduce((sum, _, id) => sum + waits(id), 0),
    read: (id: number, most: number) => followed[id]?.took(Math.min(most, waits(id))),
  };
}

describe('the windows of one connection', () => {
  it('never let more wait than the share and one window each, and never stop a channel that is read', () => {
    const reads = fc.array(fc.tuple(fc.nat(59), fc.integer({ min: 1, max: 2 * MIB })), { maxLength: 400 });
    fc.assert(
      fc.property(reads, (all) => {
        const client = clientOf(60);
        for (const [id, most] of all) {
          client.read(id, most);
          expect(client.all()).toBeLessThanOrEqual(SHARED_WINDOW + 60 * FIRST_WINDOW);
        }
        for (let id = 0; id < 60; id += 1) {
          client.read(id, Number.POSITIVE_INFINITY);
          expect(client.waits(id)).toBeGreaterThanOrEqual(FIRST_WINDOW / 2);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('grow to 2 MiB with what is read, and are given back at the end', () => {
    const client = clientOf(40);
    const readAll = (ids: number[]): void => {
      for (let round = 0; round < 10; round += 1) for (const id of ids) client.read(id, Number.POSITIVE_INFINITY);
    };
    const [early, late] = [Array.from({ length: 20 }, (_, id) => id), [38, 39]];
    readAll(early);
    expect(client.waits(0)).toBe(2 * MIB);
    readAll(late);
    expect(client.waits(39)).toBe(FIRST_WINDOW);
    for (const id of early) client.followed[id]?.end();
    readAll(late);
    expect(client.waits(39)).toBe(2 * MIB);
  });

  it('of one tenant leave room for another, whose windows grow', () => {
    const shared = new FairBytes(16 * MIB);
    const greedy = Array.from({ length: 4 }, () => clientOf(10, shared.of('greedy')));
    const modest = clientOf(1, shared.of('modest'));
    for (let round = 0; round < 10; round += 1) {
      for (const client of greedy) for (let id = 0; id < 10; id += 1) client.read(id, Number.POSITIVE_INFINITY);
    }
    const held = greedy.reduce((sum, client) => sum + client.all(), 0);
    expect(held).toBeLessThanOrEqual(8 * MIB + 40 * FIRST_WINDOW);
    for (let round = 0; round < 10; round += 1) modest.read(0, Number.POSITIVE_INFINITY);
    expect(modest.waits(0)).toBe(2 * MIB);
  });

  it('are not renewed after CLOSE, when the number may be that of another channel', () => {
    const client = clientOf(1);
    const [channel] = client.channels;
    if (channel === undefined) throw new Error('no channel');
    channel.outgoing.state = 'eof';
    client.read(0, FIRST_WINDOW);
    expect(client.waits(0)).toBeGreaterThanOrEqual(FIRST_WINDOW);
    channel.outgoing.state = 'closed';
    client.read(0, Number.POSITIVE_INFINITY);
    expect(client.waits(0)).toBe(0);
  });

  it('tell a client that sends beyond them', () => {
    const { windows, channels } = clientOf(2);
    const [channel] = channels;
    if (channel === undefined) throw new Error('no channel');
    channel.readableLength = FIRST_WINDOW;
    expect(windows.overrun()).toBe(false);
    channel.readableLength = 3 * FIRST_WINDOW;
    expect(windows.overrun()).toBe(true);
  });
});
