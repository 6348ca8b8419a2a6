import { z } from 'zod';
import { listMap, patterned, timeSchema } from '../schema.ts';

/** Currencies of one budget. */
const MOST_CURRENCIES = 8;
/** Lines of a status: currencies of the budget, currencies that it does not name, and GPU-hours. */
export const MOST_LINES = 2 * MOST_CURRENCIES + 1;

/** The unit of a line that is no currency. */
export const GPU_HOURS = 'GPU-hours';

const costSchema = z
  .object({
    currency: patterned(z.string().max(3), /^[A-Z]{3}$/, 'write an ISO 4217 code, for example USD').describe(
      'ISO 4217 code, as the prices of GPUPools have it.',
    ),
    max: patterned(
      z.string().max(20),
      /^[0-9]{1,12}(\.[0-9]{1,6})?$/,
      'write a decimal amount with at most six decimals, for example "500.00"',
    ).describe('Decimal amount per month.'),
  })
  .describe('Money of one currency.');

/** What may be spent in a calendar month of UTC. */
export const budgetSchema = z.object({
  costs: listMap(
    z
      .array(costSchema)
      .max(MOST_CURRENCIES)
      .default([])
      .describe('Money. A currency that is not in a list with entries has the limit zero. Empty: no limit.'),
    'currency',
  ),
  gpuHours: z
    .int()
    .min(0)
    .max(100_000_000)
    .optional()
    .describe('Hours times GPUs. A slice counts as its part of a GPU. Absent: no ceiling.'),
});

export type Budget = z.infer<typeof budgetSchema>;

/** Whether a budget holds anything back. */
export function isBudget(budget: Budget | undefined): budget is Budget {
  return budget !== undefined && (budget.costs.length > 0 || budget.gpuHours !== undefined);
}

/** Per cent of a budget from which on its tenant is warned. */
export const WARNINGS = [50, 80, 100] as const;

const lineSchema = z
  .object({
    unit: z.string().max(16).describe('Currency, or GPU-hours.'),
    max: z.string().max(32).describe('The money that may be spent in the month.'),
    spent: z.string().max(32).describe('The money that was spent, starts that still run included.'),
    reserved: z
      .string()
      .max(32)
      .optional()
      .describe('The money that is set aside for first hours of starts. Absent: nothing.'),
  })
  .describe('One part of the budget.');

/** What the controller says of a budget in a status. */
export const budgetStatusSchema = z
  .object({
    month: z.string().max(7).describe('The month in UTC, for example 2026-11.'),
    renewsAt: timeSchema.describe('When the next month begins.'),
    at: timeSchema.describe(
      'When this was counted. The controller writes it again when another whole per cent is spent.',
    ),
    percent: z.int().min(0).describe('Per cent of the part that is used most, rounded down.'),
    lines: z.array(lineSchema).max(MOST_LINES).describe('Each part, with what was spent.'),
    tokensVersion: z
      .string()
      .max(64)
      .optional()
      .describe('resourceVersion of the newest TokenRecord that is counted here. Absent: none is.'),
  })
  .describe('The part of the budget that was spent in this month.');

export type BudgetStatus = z.infer<typeof budgetStatusSchema>;
