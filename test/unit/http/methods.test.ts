import express from 'express';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { setPrincipal } from '../../../src/access/principal.ts';
import type { ModelRouterDeps } from '../../../src/gateway/deps.ts';
import { isProxied, methodsAt } from '../../../src/http/server/methods.ts';
import { createModelRouter } from '../../../src/gateway/router.ts';
import { allowOf } from '../../../src/lib/allow.ts';

const MODEL_PATHS = [
  '/chat/completions',
  '/responses',
  '/responses/resp_1',
  '/messages',
  '/messages/count_tokens',
  '/completions',
  '/embeddings',
  '/rerank',
  '/audio/transcriptions',
  '/responses/input_tokens',
  '/responses/resp_1/input_items',
  '/responses/resp_1/cancel',
  '/models',
  '/models/a',
  '/models/org/name',
];

it('knows the methods of the model endpoints as their router does', async () => {
  const app = express();
  app.use((request, _response, next) => {
    setPrincipal(request, { keyId: 'k', namespace: 'a', name: 'k', scopes: ['models'] });
    next();
  });
  app.use(createModelRouter({} as ModelRouterDeps));
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    for (const path of MODEL_PATHS) {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'PUT' });
      expect([path, answer.status, answer.headers.get('allow')]).toEqual([path, 405, allowOf(methodsAt(path) ?? [])]);
    }
  } finally {
    server.close();
  }
});

it('tells the paths of programs in instances from those of endpoints', () => {
  for (const path of ['/instances/i-1/proxy/8080', '/instances/i-1/proxy/8080/', '/instances/i-1/proxy/8080/a/b'])
    expect([isProxied(path), methodsAt(path)]).toEqual([true, undefined]);
  for (const path of ['/instances/i-1/proxy', '/instances/i-1/proxy/', '/proxy/1', '/instances'])
    expect(isProxied(path)).toBe(false);
});
