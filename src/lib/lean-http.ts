import { createRequire } from 'node:module';
import type * as Undici from 'undici';

// What Berth uses of HTTP, without what an import of it would load. test/unit/roles/loads.test.ts fails when a package or
// Node moves what stands here.

// An `import` of node:http reads everything that it exports, `WebSocket` among it, for which Node loads its own copy of
// undici: 10 MiB of memory that no part of Berth uses.
export const http = process.getBuiltinModule('node:http');
export const https = process.getBuiltinModule('node:https');

// The entry of undici loads fetch, WebSocket, caches and mocks too: 13 MiB of memory that no part of Berth uses. The
// package hides none of its files, and its entry gives Pool and Agent their `request` in the same way.
const load = createRequire(import.meta.url);
const dispatcher = load('undici/lib/dispatcher/dispatcher.js') as typeof Undici.Dispatcher;
dispatcher.prototype.request = load('undici/lib/api/api-request.js') as Undici.Dispatcher['request'];

/** Connections to one server. */
export type Pool = Undici.Pool;
export const Pool = load('undici/lib/dispatcher/pool.js') as typeof Undici.Pool;

/** Connections to many servers. */
export const Agent = load('undici/lib/dispatcher/agent.js') as typeof Undici.Agent;
