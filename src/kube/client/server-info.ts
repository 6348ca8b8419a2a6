import type { KubeConnection } from '../config/connection.ts';
import { toKubeError, TransportError } from '../errors.ts';
import { isObject } from '../../lib/json.ts';
import { readText } from './http-call.ts';

export interface ServerInfo {
  /** As in v1.36.2. */
  gitVersion: string;
  /** The server's clock in whole seconds, milliseconds since the epoch; undefined where a proxy takes the header away. */
  date: number | undefined;
}

const MAX_BYTES = 64 * 1024;
const CALL = 'GET /version';
const TIMEOUT_MS = 15_000;

function broken(cause: unknown): TransportError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new TransportError({ message: `${CALL}: ${why}`, status: 0, reason: 'Transport', cause });
}

async function ask(connection: KubeConnection): Promise<{ status: number; date: string; text: string }> {
  const prefix = new URL(connection.server).pathname.replace(/\/$/, '');
  const headers = { accept: 'application/json', 'user-agent': 'berth', ...(await connection.headers()) };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const answer = await connection.calls.request({ method: 'GET', path: `${prefix}/version`, headers, signal });
    const text = await readText(answer.body, MAX_BYTES);
    return { status: answer.statusCode, date: String(answer.headers['date'] ?? ''), text };
  } catch (error) {
    throw broken(error);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw broken(error);
  }
}

/** Version and clock of the API server, from one answer. Throws KubeError. */
export async function serverInfo(connection: KubeConnection): Promise<ServerInfo> {
  const { status, date, text } = await ask(connection);
  if (status >= 300) throw toKubeError(CALL, { status, body: text });
  const body = parse(text);
  const gitVersion = isObject(body) && typeof body['gitVersion'] === 'string' ? body['gitVersion'] : '';
  const at = Date.parse(date);
  return { gitVersion, date: Number.isNaN(at) ? undefined : at };
}
