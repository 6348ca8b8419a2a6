import pino from 'pino';
import { describe, expect, it, vi } from 'vitest';
import { freeMemory, type LiveConnection } from '../../../src/ssh/connection.ts';
import { FairBytes } from '../../../src/lib/shares.ts';

const MIB = 1024 * 1024;

interface Held {
  queued?: number;
  packet?: number;
  variables?: number;
}

function holding(namespace: string, { queued = 0, packet = 0, variables = 0 }: Held): LiveConnection {
  const queue = { queued: () => queued };
  const _protocol = { _decipher: { _packet: packet === 0 ? null : new Uint8Array(packet) } };
  const [client, socket] = [
    { end: vi.fn(), _protocol },
    { destroy: vi.fn(), resume: vi.fn() },
  ];
  const gateway = { log: pino({ level: 'silent' }) };
  const state = { login: { namespace }, gone: new AbortController().signal, channels: new Set(), isCut: false };
  return { gateway, client, socket, queue, variables, ...state } as unknown as LiveConnection;
}

function connection(namespace: string, queued: number): LiveConnection {
  return holding(namespace, { queued });
}

function cut(connections: LiveConnection[], limit: number): number[] {
  freeMemory(connections, limit);
  return connections.flatMap(({ isCut }, index) => (isCut ? [index] : []));
}

describe('memory that runs short', () => {
  it('is freed by the tenant that holds the most, however many its connections', () => {
    const many = Array.from({ length: 20 }, () => connection('greedy', MIB));
    expect(cut([connection('modest', 4 * MIB), ...many], 20 * MIB)).toEqual([1, 2, 3, 4]);
  });

  it('is freed by its largest connections first, and by the next tenant when that holds more', () => {
    const all = [connection('a', MIB), connection('a', 6 * MIB), connection('b', 3 * MIB), connection('b', MIB)];
    expect(cut(all, 4 * MIB)).toEqual([1, 2]);
  });

  it('is what a packet on its way and variables hold, too', () => {
    const large = { packet: MIB / 4, variables: MIB };
    expect(cut([connection('a', MIB), holding('b', large)], 2 * MIB)).toEqual([1]);
  });

  it('is left alone while it suffices', () => {
    expect(cut([connection('a', 3 * MIB)], 3 * MIB)).toEqual([]);
  });
});

describe('bytes that tenants share', () => {
  it('are half for one alone, and always leave some for the next', () => {
    const shared = new FairBytes(90);
    const [one, two] = [shared.of('one'), shared.of('two')];
    one.change(45);
    expect(one.left()).toBe(0);
    expect(two.left()).toBe(22);
    two.change(20);
    expect(one.left()).toBeLessThan(0);
    expect(two.left()).toBe(2);
    one.change(-45);
    expect(two.left()).toBe(25);
    expect(shared.of('one').left()).toBe(35);
  });
});
