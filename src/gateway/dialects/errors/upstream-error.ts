import { isObject, type Json } from '../../../lib/json.ts';
import { excerpt, objectsOf, optionalString, parseJson, textValue } from '../fields.ts';
import type { ClientError } from '../types.ts';

/** Longer messages are cut before the patterns run, because these take more than linear time, and again after. */
const MAX_INPUT = 4000;
const MAX_MESSAGE = 1000;
const URL = /\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>)\]}]+/gi;
const IPV4 = /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b/g;
const IPV6 = /\[[0-9a-f:]*:[0-9a-f:]+\](?::\d{1,5})?|\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b/gi;
const CLUSTER_NAME =
  /\b[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9-]+)*\.(?:svc|pod|cluster\.local|internal|local|lan)(?:\.[a-z0-9-]+)*(?::\d{1,5})?\b/gi;
const HOST_PORT = /\b[a-z](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9-]+)*:\d{2,5}\b(?!\d)/gi;
const FILE_PATH = /(?:\/(?:usr|opt|app|home|root|workspace|tmp|var|mnt|data|models)\/)[^\s"',:)]*/g;

/** Text without URLs, addresses, host names with a port and file paths, which would show the inside of the cluster. */
function withoutAddresses(text: string): string {
  const clean = text
    .slice(0, MAX_INPUT)
    .replace(URL, '[address]')
    .replace(IPV4, '[address]')
    .replace(IPV6, '[address]')
    .replace(CLUSTER_NAME, '[address]')
    .replace(HOST_PORT, '[address]')
    .replace(FILE_PATH, '[path]');
  return clean.length > MAX_MESSAGE ? `${clean.slice(0, MAX_MESSAGE)}…` : clean;
}

/**
 * Reads an engine's error for the client, in any shape that engines use. A server that refuses the gateway itself (401,
 * 403, 407) is the operator's problem and becomes a 502. Other statuses are kept.
 */
export function readUpstreamError(status: number, body: string): ClientError {
  if (status === 401 || status === 403 || status === 407) {
    return {
      status: 502,
      message: 'The model server refused the gateway. The operator of the server needs to check its credentials.',
      code: 'upstream_unauthorized',
    };
  }
  if (status < 400) {
    const answer = parseJson(body);
    return isErrorObject(answer) ? readErrorObject(answer) : { ...describe(answer, body), status: 502 };
  }
  return { ...describe(parseJson(body), body), status };
}

/** What an error begins with. The answers of every dialect begin otherwise. */
const ERROR_START = /^\s*\{\s*(?:"error"\s*:\s*["{]|"(?:object|type)"\s*:\s*"error")/;

/** The error that an engine sent in place of an answer, with the status of an answer. Reads no more of an answer than its start. */
export function errorInAnswer(bytes: Buffer): ClientError | undefined {
  if (!ERROR_START.test(bytes.toString('latin1', 0, 128))) return undefined;
  const answer = parseJson(bytes.toString('utf8'));
  return isErrorObject(answer) ? readErrorObject(answer) : undefined;
}

function isErrorObject(value: unknown): boolean {
  if (!isObject(value)) return false;
  return isObject(value.error) || typeof value.error === 'string' || value.object === 'error';
}

/** Reads an error object inside a stream or a 200 body. Keeps the status that it names. */
export function readErrorObject(value: unknown): ClientError {
  const outer = isObject(value) ? value : {};
  const inner = isObject(outer.error) ? outer.error : outer;
  const code = Number(inner.code ?? inner.status ?? inner.status_code);
  const type = optionalString(inner.type) ?? optionalString(outer.error_type);
  const status = Number.isInteger(code) && code >= 400 && code < 600 ? code : statusOfType(type);
  return { ...describe(outer, ''), status: status === 401 || status === 403 ? 502 : status };
}

function statusOfType(type: string | undefined): number {
  if (type === undefined) return 502;
  if (/overloaded|unavailable/i.test(type)) return 503;
  if (/rate_?limit/i.test(type)) return 429;
  if (/invalid|bad_?request|validation/i.test(type)) return 400;
  if (/not_?found/i.test(type)) return 404;
  return 502;
}

function describe(value: unknown, raw: string): Omit<ClientError, 'status'> {
  const outer = isObject(value) ? value : {};
  const inner: Json = isObject(outer.error) ? outer.error : outer;
  const message = messageOf(inner, outer) ?? firstLine(raw);
  return {
    message:
      message === ''
        ? 'The model server answered with an error and no explanation.'
        : withoutAddresses(firstLine(message)),
    code: typeof inner.code === 'string' ? inner.code : undefined,
    param: optionalString(inner.param),
  };
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
