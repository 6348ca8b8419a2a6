import { isObject, objectsOf, optionalString, parseJson, shown, textValue } from '../fields.ts';
import type { ClientError, Json } from '../types.ts';

/** Longer messages are cut, before the patterns run (they are not linear) and after. */
const MAX_INPUT = 4000;
const MAX_MESSAGE = 1000;
const URL = /\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>)\]}]+/gi;
const IPV4 = /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b/g;
const IPV6 = /\[[0-9a-f:]*:[0-9a-f:]+\](?::\d{1,5})?|\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b/gi;
const CLUSTER_NAME =
  /\b[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9-]+)*\.(?:svc|pod|cluster\.local|internal|local|lan)(?:\.[a-z0-9-]+)*(?::\d{1,5})?\b/gi;
const HOST_PORT = /\b[a-z](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9-]+)*:\d{2,5}\b(?!\d)/gi;
const FILE_PATH = /(?:\/(?:usr|opt|app|home|root|workspace|tmp|var|mnt|data|models)\/)[^\s"',:)]*/g;

/** Text without URLs, addresses, host names with a port and file paths: nothing of the inside is the client's business. */
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
 * What a backend's error says, in whatever shape its engine uses, for the client. A backend that refuses the gateway
 * itself (401, 403) is the operator's problem, told as 502; other statuses are kept.
 */
export function readUpstreamError(status: number, body: string): ClientError {
  if (status === 401 || status === 403 || status === 407) {
    return {
      status: 502,
      message: 'The model server refused the gateway; its credentials need checking.',
      code: 'upstream_unauthorized',
    };
  }
  if (status < 400) return { ...describe(parseJson(body), body), status: 502 };
  return { ...describe(parseJson(body), body), status };
}

/** An error object met inside a stream or a 200 body; its own status, if it names one, is kept. */
export function readErrorObject(value: unknown): ClientError {
  const error = describe(value, '');
  const inner = isObject(value) && isObject(value.error) ? value.error : isObject(value) ? value : {};
  const code = Number(inner.code ?? inner.status ?? inner.status_code);
  const status = Number.isInteger(code) && code >= 400 && code < 600 ? code : statusOfType(error.type);
  return { ...error, status: status === 401 || status === 403 ? 502 : status };
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
    type: optionalString(inner.type) ?? optionalString(outer.error_type),
    code: typeof inner.code === 'string' ? inner.code : undefined,
    param: optionalString(inner.param),
  };
}

/** vLLM and OpenAI: error.message; Ollama and TGI: error as a string; FastAPI: detail, as text or a list. */
function messageOf(inner: Json, outer: Json): string | undefined {
  const plain = optionalString(inner.message) ?? optionalString(outer.error) ?? optionalString(outer.detail);
  if (plain !== undefined) return plain;
  const details = objectsOf(outer.detail).map((item) => {
    const path = Array.isArray(item.loc) ? `${item.loc.map(shown).join('.')}: ` : '';
    return `${path}${textValue(item.msg)}`;
  });
  return details.length > 0 ? details.join('; ') : undefined;
}

/** A stack trace says nothing to a client; an HTML page neither. */
function firstLine(text: string): string {
  const line = text.trim().split('\n', 1)[0] ?? '';
  return line.startsWith('<') || line.startsWith('{') || line.startsWith('Traceback') ? '' : line;
}
