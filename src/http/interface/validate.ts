import type { z } from 'zod';
import { type FieldError, validationFailed } from './errors/api-error.ts';

/** Names in a path that the client chose may be of any length. */
function nameText(name: PropertyKey): string {
  return String(name).slice(0, 100);
}

function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index === 0 ? '' : '.'}${nameText(part)}`))
    .join('');
}

function fieldErrors(issue: z.core.$ZodIssue): FieldError[] {
  if (issue.code !== 'unrecognized_keys') return [{ path: pathText(issue.path), expected: expectation(issue) }];
  return issue.keys.slice(0, 20).map((key) => ({
    path: pathText([...issue.path, key]),
    expected: 'unknown field, remove it',
  }));
}

/** Types as JSON names them, where zod has another word. */
const WORDS: Readonly<Record<string, string>> = { record: 'object', int: 'integer' };

function expectation(issue: z.core.$ZodIssue): string {
  // A name in an object that its rules do not allow: they say why.
  const [inner] = issue.code === 'invalid_key' ? issue.issues : [];
  if (inner !== undefined) return expectation(inner);
  if (issue.code === 'invalid_type' && issue.message.startsWith('Invalid input'))
    return `expected ${WORDS[issue.expected] ?? issue.expected}`;
  if (issue.message.startsWith('Invalid string: must match')) return 'expected to match the documented pattern';
  return issue.message.replace(/^Invalid (?:input|option): |^Too (?:big|small): /, '');
}

/** A value of a query: the text, unless the schema wants the number or the boolean that it writes. */
function valueOf(schema: z.ZodType | undefined, text: string): unknown {
  if (schema === undefined || schema.safeParse(text).success) return text;
  if (text === 'true' || text === 'false') return text === 'true';
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}

/** The query of a URL as the schema has it; throws the 422 that lists every invalid parameter. */
export function parseQuery<S extends z.ZodRawShape>(schema: z.ZodObject<S>, url: string): z.infer<z.ZodObject<S>> {
  const mark = url.indexOf('?');
  const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1));
  const values: [string, unknown][] = [];
  for (const name of new Set(query.keys())) {
    const [text = '', ...more] = query.getAll(name);
    // Twice the same parameter is a list, which no parameter takes.
    const known = Object.hasOwn(schema.shape, name) ? (schema.shape[name] as z.ZodType) : undefined;
    values.push([name, more.length > 0 ? [text, ...more] : valueOf(known, text)]);
  }
  return parseBody<z.infer<z.ZodObject<S>>>(schema, Object.fromEntries(values));
}

/** The body as the schema has it; throws the 422 that lists every invalid field. */
export function parseBody<B>(schema: z.ZodType<B>, body: unknown): B {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const errors = parsed.error.issues.slice(0, 50).flatMap(fieldErrors);
  // One error for each field: of a number that is far too large, both the type and the bound complain.
  throw validationFailed([...new Map(errors.map((error) => [error.path, error])).values()]);
}
