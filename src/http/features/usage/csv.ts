import type { UsageAnswer } from './schema.ts';

const COLUMNS = [
  'group',
  'product',
  'gpu_seconds',
  'cost',
  'currency',
  'open',
  'calls',
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
] as const;

// A person chooses the name that a group may have. A spreadsheet takes text that begins so for a formula.
const FORMULA = /^[=+\-@\t\r]/;

function cell(value: string | number | boolean | null): string {
  const text = typeof value === 'string' && FORMULA.test(value) ? `'${value}` : String(value ?? '');
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The items as CSV (RFC 4180), with the names of the columns in the first line. */
export function toCsv({ items }: Pick<UsageAnswer, 'items'>): string {
  const lines = items.map((item) => COLUMNS.map((name) => cell(item[name])).join(','));
  return [COLUMNS.join(','), ...lines].map((line) => `${line}\r\n`).join('');
}
