import { PRICE } from '../money.ts';

/** What a million tokens of a model cost: decimal amounts with at most six decimals. */
export interface TokenPrices {
  /** Of input that the engine had not in its cache. */
  input: string;
  cachedInput: string;
  output: string;
  /** ISO 4217 code. */
  currency: string;
}

/** On a Namespace: its Services may state prices. Namespaces belong to the operator of the cluster. */
export const PRICED_MODELS_LABEL = 'berth.dev/priced-models';

const INPUT = 'berth.dev/price-input';
const CACHED_INPUT = 'berth.dev/price-cached-input';
const OUTPUT = 'berth.dev/price-output';
const CURRENCY = 'berth.dev/price-currency';
const AMOUNTS = [INPUT, CACHED_INPUT, OUTPUT] as const;

/**
 * Reads the annotations of a Service that price its models. Adds what is wrong with them to `problems`: a price that
 * cannot be read in full is none.
 *
 * @param isAllowed whether Services of this namespace may state prices
 */
export function readPrices(
  annotations: Readonly<Record<string, string>>,
  isAllowed: boolean,
  problems: string[],
): TokenPrices | undefined {
  if ([...AMOUNTS, CURRENCY].every((name) => annotations[name] === undefined)) return undefined;
  if (!isAllowed) {
    problems.push(`${INPUT} needs the label ${PRICED_MODELS_LABEL}=true on the namespace`);
    return undefined;
  }
  const input = annotations[INPUT]?.trim() ?? '';
  const cachedInput = annotations[CACHED_INPUT]?.trim() ?? input;
  const output = annotations[OUTPUT]?.trim() ?? '';
  const currency = annotations[CURRENCY]?.trim() ?? '';
  if ([input, cachedInput, output].every((price) => PRICE.test(price)) && /^[A-Z]{3}$/.test(currency))
    return { input, cachedInput, output, currency };
  problems.push(
    `the model has no price: ${INPUT} and ${OUTPUT} must be amounts such as 0.25, and ${CURRENCY} a code such as USD`,
  );
  return undefined;
}
