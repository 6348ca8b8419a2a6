import { DialectError, invalid } from '../dialects/index.ts';

const BOUNDARY = /^multipart\/form-data\s*;(?:.*;)?\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i;
const HEAD_END = Buffer.from('\r\n\r\n');
const NAME = /^content-disposition:\s*form-data\s*;(?:.*;)?\s*name="([^"]*)"/im;
const HEAD_MAX = 4096;
const MAX_PARTS = 64;
/** Names of models are shorter. Longer values are files. */
const VALUE_MAX = 1024;

/** A short field of a form, and where its value is in the body. */
export interface Field {
  name: string;
  value: string;
  from: number;
  to: number;
}

/**
 * Reads the short fields of a `multipart/form-data` body (RFC 7578), without its files. Throws DialectError 400 for a
 * body of another form.
 */
export function readFields(body: Buffer, contentType: string | undefined): Field[] {
  const [, quoted, plain] = BOUNDARY.exec(contentType ?? '') ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) throw notForm('the header Content-Type names no boundary');
  const line = Buffer.from(`--${boundary}`);
  const next = Buffer.from(`\r\n--${boundary}`);
  const fields: Field[] = [];
  let at = body.indexOf(line);
  for (let parts = 0; at !== -1 && !isLast(body, at + line.length); parts += 1) {
    if (parts === MAX_PARTS) throw notForm(`it has more than ${MAX_PARTS} parts`);
    const head = at + line.length;
    const from = body.indexOf(HEAD_END, head);
    const end = from === -1 ? -1 : body.indexOf(next, from);
    if (from === -1 || end === -1 || from - head > HEAD_MAX) throw notForm('a part of it has no end');
    const start = Math.min(from + HEAD_END.length, end);
    const name = NAME.exec(body.toString('utf8', head, from))?.[1];
    if (name !== undefined && end - start <= VALUE_MAX)
      fields.push({ name, value: body.toString('utf8', start, end), from: start, to: end });
    at = end + 2;
  }
  return fields;
}

function isLast(body: Buffer, at: number): boolean {
  return body[at] === 0x2d && body[at + 1] === 0x2d;
}

function notForm(why: string): DialectError {
  return new DialectError({
    status: 400,
    message: `The body is not multipart/form-data: ${why}.`,
    code: 'invalid_form',
  });
}

/** The one field of this name. Throws DialectError 400 when there is none or more than one. */
export function fieldOf(fields: readonly Field[], name: string): Field {
  const found = fields.filter((field) => field.name === name);
  const [only] = found;
  if (only === undefined || found.length > 1 || only.value === '') throw invalid(name, 'expected one value');
  return only;
}

/** The body with another value of one field. */
export function withField(body: Buffer, { from, to }: Field, value: string): Buffer {
  return Buffer.concat([body.subarray(0, from), Buffer.from(value), body.subarray(to)]);
}
