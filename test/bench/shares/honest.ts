import { once } from 'node:events';
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { waitFor } from '../../support/wait-for.ts';
import type { Target } from './world.ts';
import { ssh2 } from '../../../src/ssh/ssh2/load.ts';

const TIMEOUT_MS = 10_000;
/** After a refusal. */
const PAUSE_MS = 10;

interface Asked {
  method?: string;
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
  /** Ends the request at its first bytes: for a stream that does not end. */
  firstBytes?: boolean;
}

/** A request on a connection of its own. Resolves with the body; rejects with anything but success. */
function ask({ http, side }: Target, { method = 'GET', path, body, headers = {}, firstBytes }: Asked): Promise<string> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const outgoing = request({
      host: '127.0.0.1',
      port: http,
      path: `/api/v1${path}`,
      method,
      agent: false,
      timeout: TIMEOUT_MS,
      headers: {
        authorization: `Bearer ${side.tokens[0]}`,
        ...(text !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
        ...headers,
      },
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error('timeout')));
    outgoing.on('error', reject);
    outgoing.on('response', (response) => {
      let answer = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        answer += part;
        if (firstBytes) response.destroy();
      });
      response.on('error', () => undefined);
      response.on('close', () => {
        if ((response.statusCode ?? 0) < 300) resolve(answer);
        else reject(new Error(`${method} ${path}: ${response.statusCode} ${answer.slice(0, 200)}`));
      });
    });
    outgoing.end(text);
  });
}

/** What an honest tenant does; each resolves after one good answer and rejects otherwise. */
export const CALLS = {
  read: (target) => ask(target, { path: `/instances/${target.side.instance}` }),
  chat: (target) =>
    ask(target, {
      method: 'POST',
      path: '/chat/completions',
      body: { model: 'fine', messages: [{ role: 'user', content: 'Hello' }] },
    }),
  recall: async (target) => {
    // The first call stores; all others read the same response.
    stored ??= await ask(target, {
      method: 'POST',
      path: '/responses',
      body: { model: 'fine', input: 'Hello', store: true },
    });
    const { id } = JSON.parse(stored) as { id: string };
    await ask(target, { path: `/responses/${id}` });
  },
  create: async (target) => {
    const answer = await ask(target, { method: 'POST', path: '/instances', body: { name: 'honest', disk_gb: 1 } });
    const { id } = JSON.parse(answer) as { id: string };
    return async () => ask(target, { method: 'DELETE', path: `/instances/${id}` });
  },
  stream: (target) => ask(target, { path: '/offers', headers: { accept: 'text/event-stream' }, firstBytes: true }),
  login: async ({ ssh, side }) => {
    const client = new ssh2.Client();
    const closed = once(client, 'close');
    client.connect({ host: '127.0.0.1', port: ssh, username: side.user, privateKey: side.privateKey });
    await once(client, 'ready', { signal: AbortSignal.timeout(TIMEOUT_MS) });
    client.end();
    await closed;
  },
} as const satisfies Record<string, (target: Target) => Promise<unknown>>;

let stored: string | undefined;

export type CallName = keyof typeof CALLS;

export interface Felt {
  /** Milliseconds of the calls that were answered. */
  times: number[];
  /** Words of the calls that were not. */
  failures: string[];
}

/** Resolves when the call succeeds again. */
export async function recovered(name: CallName, target: Target): Promise<void> {
  await waitFor(
    `${name} to work again`,
    () =>
      CALLS[name](target)
        .then(cleanUp)
        .catch(() => false),
    120_000,
  );
}

/** Removes what a call left, outside its time. */
async function cleanUp(left: unknown): Promise<true> {
  if (typeof left === 'function') await (left as () => Promise<unknown>)();
  return true;
}

/** Calls one after the other for so many milliseconds. What a call leaves is removed outside its time. */
export async function feel(name: CallName, target: Target, ms: number): Promise<Felt> {
  const felt: Felt = { times: [], failures: [] };
  const until = performance.now() + ms;
  while (performance.now() < until) {
    const start = performance.now();
    try {
      const left: unknown = await CALLS[name](target);
      felt.times.push(performance.now() - start);
      await cleanUp(left);
    } catch (error) {
      await delay(PAUSE_MS);
      felt.failures.push(error instanceof Error ? error.message : String(error));
    }
  }
  return felt;
}
