import { createHook } from 'node:async_hooks';
import { createServer, get, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import express from 'express';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { docsRouter } from '../../../src/http/server/docs.ts';

let server: Server;
beforeEach(async () => {
  server = createServer(express().use(docsRouter()));
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
});
afterEach(() => void server.close());

interface Answer {
  status: number | undefined;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** As the server sends it: nothing is unpacked. */
function load(path: string, headers: Record<string, string>): Promise<Answer> {
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path, headers, agent: false }, (answer) => {
      buffer(answer).then((body) => resolve({ status: answer.statusCode, headers: answer.headers, body }), reject);
    }).on('error', reject);
  });
}

function textOf({ headers, body }: Answer): string {
  const unpack = { br: brotliDecompressSync, gzip: gunzipSync }[headers['content-encoding'] ?? ''];
  return (unpack?.(body) ?? body).toString();
}

it.each(['/docs/swagger-ui-bundle.js', '/docs/swagger-ui.css', '/openapi.json', '/docs/api.md'])(
  'strangers who load %s make it compressed once for each encoding',
  async (path) => {
    let compressors = 0;
    const hook = createHook({ init: (_id, type) => void (type === 'ZLIB' && (compressors += 1)) }).enable();
    const accepted = ['br', 'gzip', 'gzip, deflate, br', 'identity'];
    const asked = Array.from({ length: 40 }, (_, at) => load(path, { 'accept-encoding': accepted[at % 4] ?? '' }));
    const answers = await Promise.all(asked);
    hook.disable();
    expect(compressors).toBe(2);
    const encodings = answers.slice(0, 4).map(({ headers }) => headers['content-encoding']);
    expect(encodings).toEqual(['br', 'gzip', 'br', undefined]);
    expect(new Set(answers.map(textOf)).size).toBe(1);
    expect(new Set(answers.map(({ headers }) => headers.etag)).size).toBe(1);
    expect(answers.every(({ headers }) => headers.vary?.toLowerCase().includes('accept-encoding'))).toBe(true);
    const etag = answers[0]?.headers.etag ?? '';
    const again = await load(path, { 'accept-encoding': 'br', 'if-none-match': etag, 'cache-control': 'no-cache' });
    expect([again.status, again.body.length]).toEqual([304, 0]);
  },
);

it('the page is a page, and its Markdown is Markdown', async () => {
  const page = await load('/docs/api', { accept: '*/*' });
  expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
  const text = await load('/docs', { accept: 'text/markdown' });
  expect([text.headers['content-type'], text.headers.vary?.toLowerCase()]).toEqual([
    'text/markdown; charset=utf-8',
    'accept, accept-encoding',
  ]);
});
