/**
 * The columns of the table, with their types: those of FOCUS 1.2 that Berth can fill, then its own, which FOCUS has begin
 * with x_. https://focus.finops.org/focus-specification/v1-2/
 */
export const COLUMNS = {
  BilledCost: 'numeric NOT NULL',
  BillingAccountId: 'text NOT NULL',
  BillingAccountName: 'text',
  BillingCurrency: 'text NOT NULL',
  BillingPeriodEnd: 'timestamptz NOT NULL',
  BillingPeriodStart: 'timestamptz NOT NULL',
  ChargeCategory: 'text NOT NULL',
  ChargeClass: 'text',
  ChargeDescription: 'text NOT NULL',
  ChargeFrequency: 'text NOT NULL',
  ChargePeriodEnd: 'timestamptz NOT NULL',
  ChargePeriodStart: 'timestamptz NOT NULL',
  ConsumedQuantity: 'numeric',
  ConsumedUnit: 'text',
  ContractedCost: 'numeric NOT NULL',
  EffectiveCost: 'numeric NOT NULL',
  InvoiceIssuerName: 'text NOT NULL',
  ListCost: 'numeric NOT NULL',
  ListUnitPrice: 'numeric',
  PricingQuantity: 'numeric',
  PricingUnit: 'text',
  ProviderName: 'text NOT NULL',
  PublisherName: 'text NOT NULL',
  ResourceId: 'text',
  ResourceName: 'text',
  ResourceType: 'text',
  ServiceCategory: 'text NOT NULL',
  ServiceName: 'text NOT NULL',
  ServiceSubcategory: 'text NOT NULL',
  SkuId: 'text',
  SkuMeter: 'text',
  SkuPriceDetails: 'jsonb',
  SkuPriceId: 'text',
  SubAccountId: 'text',
  SubAccountName: 'text',
  SubAccountType: 'text',
  Tags: 'jsonb',
  x_ChargeId: 'text PRIMARY KEY',
} as const;

type Column = keyof typeof COLUMNS;

/** A row as JSON. Numbers are text, so that nothing makes them floats. */
export type Row = Record<Column, string | Readonly<Record<string, string | number>> | null>;

/** One row, and what it is compared by. */
export interface Charge {
  row: Row & { x_ChargeId: string };
  /** The billing month, such as 2026-11. */
  month: string;
  currency: string;
  /** Millionths of the currency. */
  cost: bigint;
}
