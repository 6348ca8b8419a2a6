import { isObject, type Json } from '../../../lib/json.ts';
import { excerpt, objectsOf, optionalString, parseJson, textValue } from '../fields.ts';
import { GAVE_UP, isGivenUp } from '../stop-reason.ts';
import { lastText } from '../stream/event-bytes.ts';
import type { ClientError } from '../types.ts';
import { CONTEXT_LENGTH_EXCEEDED, readOverflow } from './context-overflow.ts';
import { withoutAddresses } from './without-addresses.ts';

/**
 * Reads an engine's error for the client, in any shape that engines use. A server that refuses the gateway itself (401,
 * 403, 407) is the operator's problem and becomes a 502. A request beyond the context of the model becomes a 400, for
 * which engines have 400, 422 and 500. Other statuses are kept.
 */
export function readUpstreamError(status: number, body: string): ClientError {
  if (status === 401 || status === 403 || status === 407) {
    return {
      status: 502,
      message: 'The model server refused the gateway. The operator of the server needs to check its credentials.',
      code: 'upstream_unauthorized',
    };
  }
  // Without a mark of byte order.
  const said = parseJson(body.trim());
  // Google answers with a list of one.
  const answer: unknown = Array.isArray(said) ? said[0] : said;
  if (status < 400) return isErrorObject(answer) ? readErrorObject(answer) : describe(answer, body, 502);
  return describe(answer, body, status);
}

/** Longer answers are no errors. */
const MAX_ERROR_BYTES = 4096;
/** What an error begins with. The answers of every dialect begin otherwise. */
const ERROR_START = /^\s*\{\s*(?:"error"\s*:\s*["{]|"(?:object|type)"\s*:\s*"error")/;

/** The last bytes of an answer, among which it says why it stopped. */
const END_BYTES = 65_536;
const REASONS = ['"finish_reason":', '"stop_reason":'].map((name) => Buffer.from(name));

/**
 * The error that an engine sent in place of an answer or at its end, with the status of an answer. Of a long answer it reads
 * no more than the start and the end.
 */
export function errorInAnswer(bytes: Buffer): ClientError | undefined {
  const isShort = bytes.length <= MAX_ERROR_BYTES;
  const mayBe = (isShort ? bytes.includes('"error"') : startsAsError(bytes)) || endsGivenUp(bytes);
  if (!mayBe) return undefined;
  const answer = parseJson(bytes.toString('utf8'));
  if (isErrorObject(answer)) return readErrorObject(answer);
  return isObject(answer) && isGivenUpAnswer(answer) ? GAVE_UP : undefined;
}

function endsGivenUp(bytes: Buffer): boolean {
  const end = bytes.subarray(-END_BYTES);
  return REASONS.some((name) => isGivenUp(lastText(end, name)));
}

/** Whether an answer of chat or messages, or an event of chat, says that its engine gave it up. */
export function isGivenUpAnswer({ choices, stop_reason: reason }: Json): boolean {
  return isGivenUp(reason) || objectsOf(choices).some((choice) => isGivenUp(choice.finish_reason));
}

function startsAsError(bytes: Buffer): boolean {
  return ERROR_START.test(bytes.toString('latin1', 0, 128));
}

/** Whether an answer or an event is an error. A failed response has an error too, and is a response. */
export function isErrorObject(value: unknown): boolean {
  if (!isObject(value) || value.object === 'response') return false;
  const isNamed = value.object === 'error' || value.type === 'error';
  return isNamed || isObject(value.error) || (typeof value.error === 'string' && value.error !== '');
}

/** Reads an error object inside a stream or a 200 body. Keeps the status that it names. */
export function readErrorObject(value: unknown): ClientError {
  const outer = isObject(value) ? value : {};
  const inner = isObject(outer.error) ? outer.error : outer;
  // Text Generation Inference has `http_status_code`.
  const named = [inner.code, inner.status, inner.status_code, inner.http_status_code].flatMap(errorStatusOf).at(0);
  const types = [inner.type, outer.error_type, inner.code].map(textValue).join(' ');
  const status = named ?? statusOfType(types);
  return describe(outer, '', status === 401 || status === 403 ? 502 : status);
}

/** Of a number or its digits. What else an engine may write there is no status, and `Number` throws on some of it. */
function errorStatusOf(value: unknown): number[] {
  const status = typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value;
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status < 600 ? [status] : [];
}

function statusOfType(types: string): number {
  if (/overloaded|unavailable/i.test(types)) return 503;
  if (/rate_?limit/i.test(types)) return 429;
  if (/invalid|bad_?request|validation/i.test(types)) return 400;
  if (/not_?found/i.test(types)) return 404;
  return 502;
}

/** `context_length_exceeded`, `ECONNREFUSED`. Names of hosts have other characters. */
const CODE = /^\w{1,64}$/;
/** `messages[0].content`, `tools.0.function.name`. */
const PARAM = /^[\w.[\]-]{1,256}$/;

/** Undefined for what does not look as it should, or shows the inside. */
function shaped(value: unknown, shape: RegExp): string | undefined {
  const text = optionalString(value);
  return text !== undefined && shape.test(text) && withoutAddresses(text) === text ? text : undefined;
}

function describe(value: unknown, raw: string, status: number): ClientError {
  const outer = isObject(value) ? value : {};
  const inner: Json = isObject(outer.error) ? outer.error : outer;
  const message = messageOf(inner, outer) ?? firstLine(raw);
  const error: ClientError = {
    status,
    message:
      message === ''
        ? 'The model server answered with an error and no explanation.'
        : withoutAddresses(firstLine(message)),
    code: shaped(inner.code, CODE),
    param: shaped(inner.param, PARAM),
  };
  // A limit per minute speaks of tokens, too.
  const overflow = status === 429 ? undefined : readOverflow(inner, message);
  return overflow === undefined ? error : { ...error, status: 400, code: CONTEXT_LENGTH_EXCEEDED, overflow };
}

/** vLLM and OpenAI have error.message, Ollama and TGI error as a string, FastAPI detail as text or a list. */
function messageOf(inner: Json, outer: Json): string | undefined {
  const plain = optionalString(inner.message) ?? optionalString(outer.error) ?? optionalString(outer.detail);
  if (plain !== undefined) return plain;
  const details = objectsOf(outer.detail).map((item) => {
    const path = Array.isArray(item.loc) ? `${item.loc.map(excerpt).join('.')}: ` : '';
    return `${path}${textValue(item.msg)}`;
  });
  return details.length > 0 ? details.join('; ') : undefined;
}

/** Empty for an HTML page, a JSON text or a stack trace, which say nothing to a client. */
function firstLine(text: string): string {
  const line = text.trim().split('\n', 1)[0] ?? '';
  return line.startsWith('<') || line.startsWith('{') || line.startsWith('Traceback') ? '' : line;
}
