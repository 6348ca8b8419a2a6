import { afterEach, expect, it } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import type { WebhookParts } from '../../../src/http/features/webhooks/routes.ts';
import { NotFoundError } from '../../../src/kube/errors.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import { signingSecret } from '../../../src/resources/webhook-signing.ts';
import type { Webhook } from '../../../src/resources/webhook.ts';
import { clientOf } from '../../support/http/client.ts';
import { type LoneApi, type LoneApiOptions, startLoneApi } from '../../support/http/lone-api.ts';
import { webhook } from '../../support/notifier-world.ts';

const KEY = Buffer.alloc(32, 3);
let api: LoneApi | undefined;
afterEach(async () => {
  await api?.close();
  api = undefined;
});

function partsWith(...webhooks: Webhook[]): WebhookParts {
  const cache = new Cache<Webhook>({ indexers: INDEXES.webhooks, onListenerError: () => undefined });
  cache.replace(webhooks, '1');
  return { store: cache.store, key: () => Promise.resolve(KEY) };
}

async function callsOf(options: Partial<LoneApiOptions>, tenant = 'team') {
  api = await startLoneApi({ tenants: ['team', 'other'], ...options });
  return clientOf(`http://127.0.0.1:${api.address.port}`, tenant);
}

it('where they are off, every call says so', async () => {
  const call = await callsOf({});
  for (const [method, path, body] of [
    ['GET', '/webhooks'],
    ['POST', '/webhooks', { url: 'https://example.com/' }],
    ['GET', '/webhooks/hook'],
    ['POST', '/webhooks/hook/secret'],
    ['DELETE', '/webhooks/hook'],
  ] as const) {
    const answer = await call(method, path, body);
    expect([answer.status, answer.error['code']]).toEqual([404, 'webhooks_disabled']);
  }
});

it('before the notifier has made the key nothing is created', async () => {
  const missing = new NotFoundError({ method: 'GET', path: '/', status: 404 } as never);
  const webhooks = { ...partsWith(), key: () => Promise.reject(missing) };
  let isCreated = false;
  const create = () => {
    isCreated = true;
    return Promise.reject(new Error('unexpected'));
  };
  const call = await callsOf({ webhooks, client: { create } });
  const answer = await call('POST', '/webhooks', { url: 'https://example.com/' });
  expect([answer.status, answer.error['code'], isCreated]).toEqual([503, 'webhooks_unavailable', false]);
});

it('shows the secret of a new webhook, and of no other', async () => {
  const created: Webhook[] = [];
  const create = (_type: unknown, object: unknown) => {
    const made = object as Webhook;
    created.push({ ...made, metadata: { ...made.metadata, uid: 'new' } });
    return Promise.resolve(created.at(-1) as never);
  };
  const call = await callsOf({ webhooks: partsWith(webhook()), client: { create } });
  const events = ['instance.ready', 'instance.ready', 'budget.spent'];
  const made = await call('POST', '/webhooks', { url: 'https://example.com/', events, name: 'bot' });
  const [one] = created;
  expect(made.status, made.text).toBe(201);
  expect(one?.spec.events).toEqual(['instance.ready', 'budget.spent']);
  expect(made.json['secret']).toBe(one && signingSecret(KEY, one));
  expect(made.json['secret']).not.toBe(signingSecret(KEY, webhook()));
  const seen = (await call('GET', '/webhooks')).text + (await call('GET', '/webhooks/hook')).text;
  expect(seen.match(/"url":"https:\/\/example\.com\/hook"/g)).toHaveLength(2);
  expect(seen).toContain('"hook"');
  expect(seen).not.toContain('whsec_');
});

it('another tenant finds none of them', async () => {
  const get = () => Promise.reject(new NotFoundError({ method: 'GET', path: '/', status: 404 } as never));
  const call = await callsOf({ webhooks: partsWith(webhook()), client: { get } }, 'other');
  expect((await call('GET', '/webhooks')).data).toEqual([]);
  const answer = await call('GET', '/webhooks/hook');
  expect([answer.status, answer.error['code']]).toEqual([404, 'webhook_not_found']);
});

it.each([
  'ftp://example.com/',
  'example.com/hook',
  'https://user:password@example.com/',
  'https://example.com/#part',
  'https:///path',
  'https://:443/',
  'https://exa mple.com/',
  'https://example.com/a\nb',
  `https://example.com/${'a'.repeat(2048)}`,
])('refuses the URL %j', async (url) => {
  const call = await callsOf({ webhooks: partsWith() });
  const answer = await call('POST', '/webhooks', { url });
  expect([answer.status, answer.error['code']]).toEqual([422, 'validation_failed']);
});

it('a key that may only read makes, changes and deletes none', async () => {
  const keys = { team: { scopes: ['compute:read' as const] } };
  const call = await callsOf({ webhooks: partsWith(webhook({ url: 'https://example.com/a?b=hunter2' })), keys });
  for (const path of ['/webhooks', '/webhooks/hook']) {
    const { status, text } = await call('GET', path);
    // What follows the host may be a password.
    expect([status, text]).toEqual([200, expect.stringContaining('"url":"https://example.com/***"')]);
    expect(text).not.toContain('hunter2');
  }
  for (const [method, path] of [
    ['POST', '/webhooks'],
    ['POST', '/webhooks/hook/secret'],
    ['DELETE', '/webhooks/hook'],
  ] as const) {
    expect((await call(method, path)).error['code']).toBe('insufficient_scope');
  }
});
