import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { setPrincipal } from '../../../src/access/principal.ts';
import type { ApiContext } from '../../../src/http/server/context.ts';
import { errorHandler } from '../../../src/http/interface/errors/handler.ts';
import { openApiDocument } from '../../../src/http/server/openapi/document.ts';
import { resourceRouter } from '../../../src/http/interface/route.ts';
import { RESOURCES } from '../../../src/http/server/table.ts';

// The router is built from the table that the document is made from. Here the two are compared from outside.

const routes = RESOURCES.flatMap((resource) => resource.routes);
const context = { readJson: () => undefined } as unknown as ApiContext;
const app = express();
app.use((request, _response, next) => {
  setPrincipal(request, { keyId: 'k', namespace: 'a', name: 'k', scopes: ['models'] });
  next();
});
for (const resource of RESOURCES) app.use(resource.path, resourceRouter(resource, context));
app.use(errorHandler(pino({ level: 'silent' })));

let server: Server;
let url: string;

beforeAll(async () => {
  server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
});

it.each([...new Set(routes.map(({ path }) => path))])('%s allows the methods that are documented', async (path) => {
  const { paths } = openApiDocument() as { paths: Record<string, object> };
  const methods = Object.keys(paths[path] ?? {}).map((method) => method.toUpperCase());
  const allow = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
  const answer = await fetch(`${url}${path.replaceAll(/[{}]/g, '')}`, { method: 'LOCK' });
  expect([answer.status, answer.headers.get('allow')]).toEqual([405, `${allow}, OPTIONS`]);
  expect(await answer.text()).toContain(`LOCK is not allowed here, only ${allow}.`);
});

it.each(routes)('$method $path needs the scope $scope before its body is read', async ({ method, path, scope }) => {
  const body = method === 'get' ? {} : { body: '{not JSON' };
  const answer = await fetch(`${url}${path.replaceAll(/[{}]/g, '')}`, { method: method.toUpperCase(), ...body });
  expect(answer.status).toBe(403);
  expect(await answer.text()).toContain(`This needs the scope ${scope}.`);
});
