import { createRequire } from 'node:module';
import type * as Undici from 'undici';

// The entry of the package loads fetch, WebSocket, caches and mocks too: 13 MiB of memory that no part of Berth uses. The
// package hides none of its files, and its entry gives Pool and Agent their `request` in the same way.
const load = createRequire(import.meta.url);
const dispatcher = load('undici/lib/dispatcher/dispatcher.js') as typeof Undici.Dispatcher;
dispatcher.prototype.request = load('undici/lib/api/api-request.js') as Undici.Dispatcher['request'];

/** Connections to one server. */
export type Pool = Undici.Pool;
export const Pool = load('undici/lib/dispatcher/pool.js') as typeof Undici.Pool;

/** Connections to many servers. */
export const Agent = load('undici/lib/dispatcher/agent.js') as typeof Undici.Agent;
