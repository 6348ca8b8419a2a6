import { expect, test } from 'vitest';
import { serverInfo } from '../../../src/kube/client/server-info.ts';
import { ForbiddenError, TransportError } from '../../../src/kube/errors.ts';
import { type Handler, localServer } from '../../support/local-server.ts';

const DATE = 'Mon, 23 Nov 2026 12:00:00 GMT';

function answers(status: number, body: string, headers: Record<string, string> = { date: DATE }): Handler {
  return (_request, response) => {
    response.sendDate = false;
    response.writeHead(status, headers).end(body);
  };
}

test('says the version and the clock of the server, below its prefix and with the credentials', async () => {
  const headers = () => Promise.resolve({ authorization: 'Bearer x' });
  const seen: (string | undefined)[] = [];
  const handler: Handler = (request, response, attempt) => {
    seen.push(request.headers.authorization);
    return answers(200, JSON.stringify({ gitVersion: 'v1.36.2' }))(request, response, attempt);
  };
  await using server = await localServer(handler, { prefix: '/k8s', headers });
  expect(await serverInfo(server.connection)).toEqual({ gitVersion: 'v1.36.2', date: Date.parse(DATE) });
  expect(server.requests).toEqual(['GET /k8s/version']);
  expect(seen).toEqual(['Bearer x']);
});

test('an answer without a date says nothing about the clock', async () => {
  await using server = await localServer(answers(200, '{"gitVersion":"v1.36.2"}', {}));
  expect(await serverInfo(server.connection)).toEqual({ gitVersion: 'v1.36.2', date: undefined });
});

test.each<[what: string, handler: Handler, kind: new (...args: never[]) => Error]>([
  ['a refusal', answers(403, '{}'), ForbiddenError],
  ['an answer that is no JSON', answers(200, '<html>'), TransportError],
  ['an answer that is too long', answers(200, `"${'x'.repeat(100_000)}"`), TransportError],
  ['a connection that breaks', (request) => void request.socket.destroy(), TransportError],
])('%s is an error of the API server', async (_what, handler, kind) => {
  await using server = await localServer(handler);
  await expect(serverInfo(server.connection)).rejects.toThrow(kind);
  await expect(serverInfo(server.connection)).rejects.toThrow('GET /version');
});
