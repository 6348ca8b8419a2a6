import { gunzipSync } from 'node:zlib';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packCli } from '../../../src/http/features/cli/package.ts';
import { filesInTar } from '../../../src/lib/tar.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';

let api: LoneApi;
let url: string;
beforeAll(async () => {
  api = await startLoneApi({ tenants: ['team'] });
  url = `http://127.0.0.1:${api.address.port}/cli/berth.tgz`;
});
afterAll(() => api.close());

it('the package is there without a key, and has not changed while its ETag says so', async () => {
  const answer = await fetch(url);
  expect(answer.status).toBe(200);
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'content-type': 'application/gzip',
    'x-content-type-options': 'nosniff',
  });
  expect(Buffer.from(await answer.arrayBuffer())).toEqual(packCli().content);
  const etag = answer.headers.get('etag') ?? '';
  expect((await fetch(url, { headers: { 'if-none-match': etag } })).status).toBe(304);
  expect((await fetch(url, { headers: { 'if-none-match': '"other"' } })).status).toBe(200);
  expect((await fetch(url, { method: 'HEAD' })).status).toBe(200);
  expect((await fetch(url, { method: 'POST' })).status).toBe(405);
});

it('it has the commands, the version of the server, no dependency and nothing of the server', () => {
  const files = filesInTar(gunzipSync(packCli().content));
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  const manifest = JSON.parse(files.get('package/package.json')?.toString() ?? '') as Record<string, unknown>;
  expect(manifest).toMatchObject({ version, bin: { berth: 'cli/berth.js', 'kubectl-berth': 'cli/kubectl-berth.js' } });
  expect(manifest['dependencies']).toBeUndefined();
  const scripts = [...files].filter(([name]) => name.endsWith('.js'));
  expect(scripts.length).toBeGreaterThan(20);
  expect(scripts.filter(([name]) => !/^package\/(cli|wire)\//.test(name))).toEqual([]);
  for (const [name, content] of scripts) {
    const imports = [...content.toString().matchAll(/(?:from|import)\s*\(?\s*'([^'\n]+)'/g)].map(
      ([, from = '']) => from,
    );
    for (const from of imports.filter((one) => !one.startsWith('node:'))) {
      const target = new URL(from, `file:///${name}`).pathname.slice(1);
      expect(files.has(target), `${name} imports ${from}`).toBe(true);
    }
  }
});
