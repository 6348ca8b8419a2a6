import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { type Events, openEvents } from '../../support/http/events.ts';
import type { FollowedLog, PythonClient } from '../../support/generated/python-client.ts';
import type { Tenant } from './http.ts';

type Json = Record<string, unknown>;

/** One way to rent with a key alone. Every step throws when the server refuses it. */
export interface Renter {
  addKey(key: { name: string; public_key: string }): Promise<Json>;
  removeKey(id: unknown): Promise<unknown>;
  addRegistry(credentials: Json): Promise<Json>;
  removeRegistry(name: string): Promise<unknown>;
  rent(wanted: Json): Promise<Json>;
  show(id: string): Promise<Json>;
  change(id: string, change: Json): Promise<Json>;
  giveBack(id: string): Promise<unknown>;
  /** The history, which outlives the instance. */
  events(id: string): Promise<Json>;
  /** Follows the log from its first line, and goes on by itself when the server breaks off. */
  follow(id: string): FollowedLog;
}

const line = z.object({ text: z.string() });

/** Follows a log as an event stream, and resumes it at the last id. */
function followLog(url: string, token: string): FollowedLog {
  const streams: Events[] = [];
  const stopped = new AbortController();
  const seen = () => streams.flatMap((one) => one.seen);
  async function goOn(): Promise<void> {
    while (!stopped.signal.aborted) {
      const lastId = seen().findLast(({ type }) => type === 'line')?.id;
      const stream = await openEvents(url, token, lastId).catch(() => undefined);
      if (stream === undefined) {
        await delay(100);
        continue;
      }
      streams.push(stream);
      await stream.ended.catch(() => undefined);
    }
  }
  const over = goOn();
  return {
    lines: () =>
      seen()
        .filter(({ type }) => type === 'line')
        .map(({ json }) => line.parse(json).text),
    async stop() {
      stopped.abort();
      await streams.at(-1)?.close();
      await over;
    },
  };
}

/** By requests as the documents show them. */
export function httpRenter(user: Tenant, base: string): Renter {
  async function call(method: string, path: string, body?: unknown): Promise<Json> {
    const answer = await user.call(method, `/api/v1${path}`, body);
    if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }
  return {
    addKey: (key) => call('POST', '/ssh-keys', key),
    removeKey: (id) => call('DELETE', `/ssh-keys/${String(id)}`),
    addRegistry: (credentials) => call('POST', '/registries', credentials),
    removeRegistry: (name) => call('DELETE', `/registries/${name}`),
    rent: (wanted) => call('POST', '/instances', wanted),
    show: (id) => call('GET', `/instances/${id}`),
    change: (id, change) => call('PATCH', `/instances/${id}`, change),
    giveBack: (id) => call('DELETE', `/instances/${id}`),
    events: (id) => call('GET', `/instances/${id}/events`),
    follow: (id) => followLog(`${base}/api/v1/instances/${id}/logs?follow=true`, user.token),
  };
}

/** By the Python client that is generated from /openapi.json. */
export function pythonRenter(client: PythonClient): Renter {
  return {
    addKey: (key) => client.step('add_key', key),
    removeKey: (id) => client.step('remove_key', { id }),
    addRegistry: (credentials) => client.step('add_registry', credentials),
    removeRegistry: (name) => client.step('remove_registry', { name }),
    rent: (wanted) => client.step('rent', wanted),
    show: (id) => client.step('show', { id }),
    change: (id, change) => client.step('change', { id, change }),
    giveBack: (id) => client.step('give_back', { id }),
    events: (id) => client.step('events', { id }),
    follow: (id) => client.follow(id),
  };
}
