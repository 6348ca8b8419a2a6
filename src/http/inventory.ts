import type { Inventory } from '../inventory/inventory.ts';

/** What the HTTP interface asks of the inventory. */
export type OfferSource = Pick<Inventory, 'offers' | 'onChange' | 'grant' | 'preempt'>;
