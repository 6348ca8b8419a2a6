import { z } from 'zod';
import type { KubeObject } from '../kube/types.ts';
import { MOST_CREATED_BY } from './instances/claim.ts';
import { AGE_COLUMN, amountSchema, berthType, patterned, withRules, type CustomResource } from './schema.ts';

/** Entries of one record. */
export const MOST_ENTRIES = 64;
/** Longest name of a model. */
export const MOST_MODEL = 257;

const countSchema = z.int().min(0);
const PRICE_CHARACTERS = 14;

const entrySchema = z
  .object({
    by: z.string().max(MOST_CREATED_BY).describe('The caller: key/NAME or person/NAME.'),
    model: z.string().max(MOST_MODEL).describe('Name of the model, as the calls had it.'),
    inputPrice: amountSchema('Price of a million input tokens that the engine had not in its cache.', PRICE_CHARACTERS),
    cachedInputPrice: amountSchema(
      'Price of a million input tokens that the engine had in its cache.',
      PRICE_CHARACTERS,
    ),
    outputPrice: amountSchema('Price of a million output tokens.', PRICE_CHARACTERS),
    calls: countSchema.describe('Calls that were answered.'),
    unreported: countSchema.describe('Those of them for which the engine reported no tokens. They cost nothing.'),
    estimated: countSchema
      .optional()
      .describe(
        'Those of them for which the engine had not reported all tokens, mostly because the client left or lost access: what was passed on is estimated. Absent: none.',
      ),
    inputTokens: countSchema.describe('Input tokens that engines reported, cached ones included.'),
    cachedInputTokens: countSchema.describe('Those of them that engines had in their caches.'),
    outputTokens: countSchema.describe('Output tokens that engines reported.'),
    cost: amountSchema('The cost of the tokens at these prices, rounded half up to the sixth decimal.'),
  })
  .describe('Calls of one key or person to one model at one price.');

const SAME = ['by', 'model', 'inputPrice', 'cachedInputPrice', 'outputPrice'];
const GROWING = ['calls', 'unreported', 'inputTokens', 'cachedInputTokens', 'outputTokens'];
/** A text in CEL that is no less than it was. Kubernetes reads such amounts exactly. */
function noLess(now: string, before: string): string {
  return `quantity(${now}).compareTo(quantity(${before})) >= 0`;
}
const conditions = [
  ...SAME.map((name) => `now.${name} == before.${name}`),
  ...GROWING.map((name) => `now.${name} >= before.${name}`),
  noLess('now.cost', 'before.cost'),
  '(!has(before.estimated) || (has(now.estimated) && now.estimated >= before.estimated))',
];

export const tokenRecordSpecSchema = withRules(
  z.object({
    day: patterned(z.string().max(10), /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/, 'write a day such as 2026-11-23').describe(
      'The day on which the calls ended, in UTC.',
    ),
    replica: z.string().max(253).describe('The replica of the gateway that served them.'),
    calls: countSchema.describe('Calls of all entries.'),
    cost: amountSchema('Cost of all entries.'),
    currency: z.string().max(3).describe('ISO 4217 code of every price and cost here.'),
    entries: z
      .array(entrySchema)
      .min(1)
      .max(MOST_ENTRIES)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .describe('The counts of the replica on this day.'),
  }),
  // Also against a write of the replica itself that arrives after a later one.
  {
    rule: `self.day == oldSelf.day && self.replica == oldSelf.replica && self.currency == oldSelf.currency && oldSelf.entries.all(before, self.entries.exists(now, ${conditions.join(' && ')}))`,
    message: 'the counts and costs of a token record only grow: leave it as it is',
  },
  {
    rule: `self.calls >= oldSelf.calls && ${noLess('self.cost', 'oldSelf.cost')}`,
    message: 'calls and cost of a token record only grow: leave it as it is',
  },
);

export type TokenEntry = z.infer<typeof entrySchema>;
export interface TokenRecord extends KubeObject {
  spec: z.infer<typeof tokenRecordSpecSchema>;
}

export const TOKEN_RECORDS = berthType<TokenRecord>('TokenRecord', 'tokenrecords');

export const tokenRecordResource: CustomResource = {
  ...TOKEN_RECORDS,
  shortNames: ['tokens'],
  description:
    'The cost of the calls of a tenant to priced models: those of one day that one replica of the gateway served.',
  columns: [
    { name: 'Day', type: 'string', jsonPath: '.spec.day' },
    { name: 'Calls', type: 'integer', jsonPath: '.spec.calls' },
    { name: 'Cost', type: 'string', jsonPath: '.spec.cost' },
    { name: 'Currency', type: 'string', jsonPath: '.spec.currency' },
    { name: 'Replica', type: 'string', jsonPath: '.spec.replica', priority: 1 },
    AGE_COLUMN,
  ],
  spec: tokenRecordSpecSchema,
};
