import type { Month } from '../ledger/month.ts';
import { formatMoney } from '../resources/money.ts';
import type { Charge, Row } from './columns.ts';

/** FOCUS wants names of companies here. Berth knows no better one. */
const PROVIDER = 'Berth';
/** What a resource belongs to, by its kind. */
const SERVICES = {
  Instance: { ServiceCategory: 'Compute', ServiceName: 'GPU instances', ServiceSubcategory: 'Containers' },
  Model: {
    ServiceCategory: 'AI and Machine Learning',
    ServiceName: 'Model endpoints',
    ServiceSubcategory: 'Generative AI',
  },
} as const;

/** What the rows of all charges have. */
export interface Basis {
  id: string;
  /** The tenant. */
  namespace: string;
  month: Month;
  /** Milliseconds since the epoch. */
  period: { from: number; to: number };
  currency: string;
  /** Millionths. */
  cost: bigint;
  /** key/NAME or person/NAME. */
  createdBy: string | undefined;
  kind: keyof typeof SERVICES;
}

/** The columns that depend on what is charged. */
type Rest = Omit<Row, keyof ReturnType<typeof common>>;

/** A number with decimals, from so many of the last of them. */
export function decimal(value: bigint, digits: number): string {
  if (value < 0n) return `-${decimal(-value, digits)}`;
  const text = value.toString().padStart(digits + 1, '0');
  return `${text.slice(0, -digits)}.${text.slice(-digits)}`;
}

export function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

/** Null where there is no text: FOCUS knows no empty ones. */
export function orNull(text: string | undefined): string | null {
  return text === undefined || text === '' ? null : text;
}

function common({ id, namespace, month, period, currency, cost, createdBy, kind }: Basis) {
  const amount = formatMoney(cost);
  const [type = '', name = ''] = createdBy === undefined ? [] : createdBy.split(/\/(.*)/s);
  return {
    // Berth knows no discounts, so all four are one.
    BilledCost: amount,
    ContractedCost: amount,
    EffectiveCost: amount,
    ListCost: amount,
    BillingAccountId: namespace,
    BillingAccountName: null,
    BillingCurrency: currency,
    BillingPeriodStart: timeText(month.from),
    BillingPeriodEnd: timeText(month.to),
    ChargePeriodStart: timeText(period.from),
    ChargePeriodEnd: timeText(period.to),
    InvoiceIssuerName: PROVIDER,
    ProviderName: PROVIDER,
    PublisherName: PROVIDER,
    ...SERVICES[kind],
    SubAccountId: orNull(createdBy),
    SubAccountName: orNull(name),
    SubAccountType: type === '' ? null : `${type.slice(0, 1).toUpperCase()}${type.slice(1)}`,
    x_ChargeId: id,
  };
}

export function chargeOf(basis: Basis, rest: Rest): Charge {
  const { month, currency, cost } = basis;
  return { row: { ...common(basis), ...rest }, month: month.name, currency, cost };
}
