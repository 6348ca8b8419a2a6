import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import { DialectError, invalid } from '../dialects/index.ts';
import { FORM_FIELD } from '../../wire/model-endpoints.ts';
import { isDeciding } from './parse-body.ts';

const CRLF = '\r\n';
const HEAD_END = Buffer.from('\r\n\r\n');
const HEAD_MAX = 4096;
const MAX_PARTS = 64;
/** A prompt is longer than other fields. */
const FIELD_MAX = 65_536;
const BOUNDARY = /^[\w'()+,./:=?-]{1,70}$/;
const HEADER = /^([\w-]+):(.*)$/;
const PARAMETER = /\s*;\s*([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"\\]+))/y;
/** The others change how the content is read. */
const IDENTITY = /^(?:binary|8bit|7bit)$/i;
const MEDIA_TYPE = /^[\w.+-]+\/[\w.+-]+$/;
/** What ends a quoted name early, or leads to another folder. */
const NOT_IN_FILENAME = /["\\/\p{Cc}]/gu;

/** A field of a form; a file if it has a `filename`. */
export interface Part {
  name: string;
  filename?: string;
  type?: string;
  content: Buffer;
}

/**
 * Reads a `multipart/form-data` body (RFC 7578) in its strictest form. Readers differ in nearly everything else: line ends,
 * what stands around the parts, folded lines, parameters that stand twice. Throws DialectError 400 for such a body.
 */
export function readForm(body: Buffer, contentType: string | undefined): Part[] {
  const { value, parameters } = withParameters(contentType ?? '') ?? {};
  const boundary = parameters?.get('boundary') ?? '';
  if (value !== 'multipart/form-data' || !BOUNDARY.test(boundary))
    throw notForm('the header Content-Type names no boundary, or more than one');
  const delimiter = Buffer.from(`${CRLF}--${boundary}`);
  const first = delimiter.subarray(CRLF.length);
  if (!body.subarray(0, first.length).equals(first)) throw notForm('it does not begin with its boundary');
  const parts: Part[] = [];
  for (let at = first.length; ;) {
    const rest = body.toString('latin1', at, at + 5);
    if (rest === '--' || rest === `--${CRLF}`) break;
    if (!rest.startsWith(CRLF))
      throw notForm('a line with its boundary has more than that, or something follows its end');
    if (parts.length === MAX_PARTS) throw notForm(`it has more than ${MAX_PARTS} parts`);
    const headEnd = body.indexOf(HEAD_END, at);
    const start = headEnd + HEAD_END.length;
    const end = headEnd === -1 ? -1 : body.indexOf(delimiter, start);
    if (end === -1) throw notForm('a part of it has no end');
    parts.push(readPart(body.subarray(at + CRLF.length, headEnd), body.subarray(start, end)));
    at = end + delimiter.length;
  }
  checkNames(parts);
  return parts;
}

function readPart(head: Buffer, content: Buffer): Part {
  if (head.length > HEAD_MAX || !isUtf8(head)) throw notForm('a part of it has headers that are too long, or no UTF-8');
  const headers = new Map<string, string>();
  for (const line of head.toString('utf8').split(CRLF)) {
    const [, name, value = ''] = HEADER.exec(line) ?? [];
    if (name === undefined || headers.has(name.toLowerCase()))
      throw notForm('a part of it has a header that is folded, stands twice, or is none');
    headers.set(name.toLowerCase(), value.trim());
  }
  const disposition = withParameters(headers.get('content-disposition') ?? '');
  const { name, filename, 'filename*': extended, ...others } = Object.fromEntries(disposition?.parameters ?? []);
  const isKnown = Object.keys(others).length === 0 && (extended === undefined || filename !== undefined);
  if (disposition?.value !== 'form-data' || !isKnown || name === undefined)
    throw notForm('a part of it has no header Content-Disposition of the form: form-data; name="field"');
  if (!FORM_FIELD.test(name)) throw notForm('the name of a field has other characters than a-z, 0-9 and _.-[]');
  if (!IDENTITY.test(headers.get('content-transfer-encoding') ?? 'binary'))
    throw notForm(`the part '${name}' has a Content-Transfer-Encoding`);
  if (filename === undefined && (content.length > FIELD_MAX || !isUtf8(content)))
    throw invalid(name, `expected at most ${FIELD_MAX} bytes of UTF-8, or a file with a filename`);
  const type = withParameters(headers.get('content-type') ?? '')?.value ?? '';
  return { name, content, ...(filename !== undefined && { filename }), ...(MEDIA_TYPE.test(type) && { type }) };
}

/** A header's value without parameters, and those, each once. Undefined for a header of another form. */
function withParameters(header: string): { value: string; parameters: Map<string, string> } | undefined {
  const [value = ''] = /^[^\s;]*/.exec(header) ?? [];
  const parameters = new Map<string, string>();
  let at = value.length;
  while (at < header.length) {
    PARAMETER.lastIndex = at;
    const [whole, written, quoted, token = ''] = PARAMETER.exec(header) ?? [];
    const name = written?.toLowerCase();
    if (whole === undefined || name === undefined || parameters.has(name)) return undefined;
    parameters.set(name, quoted?.replaceAll(/\\(.)/g, '$1') ?? token);
    at += whole.length;
  }
  return { value: value.toLowerCase(), parameters };
}

/** Servers make a list of a field that stands more than once, or take one of them: nobody decides by such a one. */
function checkNames(parts: readonly Part[]): void {
  const seen = new Set<string>();
  for (const { name } of parts) {
    if (isDeciding(name) && seen.has(name)) throw invalid(name, 'expected it once');
    seen.add(name);
  }
}

function notForm(why: string): DialectError {
  return new DialectError({
    status: 400,
    message: `The body is not multipart/form-data: ${why}.`,
    code: 'invalid_form',
  });
}

/** The text of the field of this name; undefined without it. Throws DialectError 400 for a file or an empty one. */
export function textOf(parts: readonly Part[], name: string): string | undefined {
  const part = parts.find((one) => one.name === name);
  if (part === undefined) return undefined;
  if (part.filename !== undefined || part.content.length === 0) throw invalid(name, 'expected one value');
  return part.content.toString('utf8');
}

/** Writes a form anew, in one spelling, between boundaries that nobody could foresee. */
export function writeForm(parts: readonly Part[]): { contentType: string; body: Buffer } {
  const boundary = `berth-${randomUUID()}`;
  const pieces = parts.flatMap(({ name, filename, type, content }) => {
    const file = filename === undefined ? '' : `; filename="${filename.replaceAll(NOT_IN_FILENAME, '_')}"`;
    const typed = filename === undefined ? '' : `${CRLF}Content-Type: ${type ?? 'application/octet-stream'}`;
    const head = `--${boundary}${CRLF}Content-Disposition: form-data; name="${name}"${file}${typed}${CRLF}${CRLF}`;
    return [Buffer.from(head), content, Buffer.from(CRLF)];
  });
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: Buffer.concat([...pieces, Buffer.from(`--${boundary}--${CRLF}`)]),
  };
}
