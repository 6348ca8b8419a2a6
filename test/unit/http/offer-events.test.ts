import { expect, it } from 'vitest';
import { OfferEvents } from '../../../src/http/features/offers/offer-events.ts';
import type { Inventory } from '../../../src/inventory/inventory.ts';
import type { Offer } from '../../../src/inventory/offers.ts';
import { fakeClock } from '../../support/fake-clock.ts';

const PRICES = { onDemand: '1.00', interruptible: '0.50', currency: 'USD' };

it('offers are written once for each state of the fleet, however many streams are opened', async () => {
  const clock = fakeClock();
  let written = 0;
  const offer = (id: number, available: number) => {
    const imageCached = (): boolean => {
      written += 1;
      return false;
    };
    return { id, available, prices: PRICES, imageCached } as unknown as Offer;
  };
  let offers = [offer(2, 1), offer(1, 1)];
  let changed = (): void => undefined;
  const onChange = (listener: () => void) => {
    changed = listener;
    return () => undefined;
  };
  const inventory = { offers: () => offers, onChange } as unknown as Inventory;
  const events = new OfferEvents({ offers: inventory, clock, defaultImage: 'debian:12' });
  const got: string[] = [];
  const follow = () => events.follow(undefined, ({ type, data }) => got.push(`${type} ${data.length > 0}`));
  for (let count = 0; count < 50; count += 1) follow()();
  expect([written, got.length, got[0]]).toEqual([2, 50, 'snapshot true']);
  expect([...events.current().keys()]).toEqual([1, 2]);
  const leave = follow();
  offers = [offer(1, 1), offer(2, 0)];
  changed();
  await clock.advance(100);
  expect([written, got.slice(51)]).toEqual([4, ['offer true']]);
  leave();
  events.close();
});
