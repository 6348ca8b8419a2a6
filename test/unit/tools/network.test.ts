import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { freeSlot, networkOf } from '../../../tools/cluster/built/network.ts';

const slots = fc.integer({ min: 0, max: 255 });

function routesOf(slot: number): { dst: string }[] {
  const { hostAddress, podCidr, serviceCidr } = networkOf(slot);
  return [{ dst: hostAddress.replace(/1$/, '0/30') }, { dst: podCidr }, { dst: serviceCidr }];
}

describe('freeSlot', () => {
  it('keeps the preferred slot on a host with unrelated routes', () => {
    fc.assert(
      fc.property(slots, (slot) => {
        const routes = [{ dst: 'default' }, { dst: '192.168.0.0/16' }, { dst: '10.0.0.0/9' }, { dst: '127.0.0.1' }];
        expect(freeSlot(slot, routes)).toBe(slot);
      }),
    );
  });

  it('moves on when any one of its routes is there', () => {
    fc.assert(
      fc.property(slots, fc.integer({ min: 0, max: 2 }), (slot, which) => {
        const route = routesOf(slot)[which];
        expect(freeSlot(slot, route === undefined ? [] : [route])).toBe((slot + 1) % 256);
      }),
    );
  });

  it('sees a wider route and a single address', () => {
    expect(freeSlot(4, [{ dst: '10.253.0.0/21' }])).toBe(8);
    expect(freeSlot(4, [{ dst: '10.252.4.77' }])).toBe(5);
  });

  it('gives up when the whole range is routed', () => {
    expect(freeSlot(7, [{ dst: '10.0.0.0/8' }])).toBeUndefined();
  });

  it('gives two clusters that start one after the other different networks', () => {
    fc.assert(
      fc.property(slots, slots, (first, second) => {
        expect(freeSlot(second, routesOf(first))).not.toBe(first);
      }),
    );
  });
});
