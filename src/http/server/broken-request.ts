import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { tokenOf, unauthorized } from '../interface/auth/middleware.ts';
import { type ErrorCode, ERRORS } from '../interface/errors/catalogue.ts';
import { familyOf, relativePath } from '../interface/errors/families.ts';
import { renderError } from '../interface/errors/handler.ts';
import { http } from '../../lib/lean-http.ts';

const PARSER_ERRORS: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

/** Why Node's parser gave up. Some errors have the bytes that came last, and where in them it stopped. */
export interface ParserError extends Error {
  code?: string;
  rawPacket?: Buffer;
  bytesParsed?: number;
}

/** As much of a request as its client's last bytes show. */
interface Seen {
  method: string;
  path: string;
  /** The lines after the first one. */
  lines: readonly string[];
}

function seenOf({ rawPacket, bytesParsed = 0 }: ParserError): Seen {
  const text = rawPacket?.toString('latin1') ?? '';
  // Whole requests may stand before it.
  const before = bytesParsed < 4 ? -1 : text.lastIndexOf('\r\n\r\n', bytesParsed - 4);
  const [head = ''] = text.slice(before < 0 ? 0 : before + 4).split('\r\n\r\n', 1);
  const [first = '', ...lines] = head.split('\r\n');
  const [, method = '', target = ''] = /^(\S+) (\S+) HTTP\/\d/.exec(first) ?? [];
  return { method, path: target.split('?', 1)[0] ?? '', lines };
}

function headerOf(name: string, lines: readonly string[]): string | undefined {
  const line = lines.find((one) => one.toLowerCase().startsWith(`${name}:`));
  return line?.slice(name.length + 1).trim();
}

function tokenIn({ path, lines }: Seen): string | undefined {
  const authorization = headerOf('authorization', lines);
  const others = { 'x-api-key': headerOf('x-api-key', lines), 'api-key': headerOf('api-key', lines) };
  return tokenOf({ ...(authorization !== undefined && { authorization }), ...others }, path);
}

type Answer = { status: number; headers: Record<string, string>; body: string };

function refusal(code: ErrorCode, path: string): Answer {
  const { status, help: message } = ERRORS[code];
  const id = randomUUID();
  const body = JSON.stringify(renderError({ message, code, status, extra: {} }, familyOf(path), id));
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'access-control-allow-origin': '*',
    'x-request-id': id,
  };
  return { status, headers, body };
}

/**
 * Answers bytes that are no valid request, as a route would: with the 401 when it can be seen that a request to the API
 * has no valid key, else with an error in the shape of its path.
 * @param isValid whether a token, or none, is that of a valid key
 */
export function brokenRequests(
  isValid: (token: string | undefined) => boolean,
): (error: ParserError, socket: Socket) => void {
  return (error, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const seen = seenOf(error);
    const path = relativePath(seen.path);
    const isRefused = path !== undefined && !isValid(tokenIn({ ...seen, path }));
    const { status, headers, body } = isRefused
      ? { status: 401, ...unauthorized(familyOf(path)) }
      : refusal(PARSER_ERRORS[error.code ?? ''] ?? 'bad_request', path ?? '');
    const all = { ...headers, connection: 'close', 'content-length': Buffer.byteLength(body) };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${lines.join('')}\r\n`);
    socket.end(seen.method === 'HEAD' ? '' : body);
  };
}
