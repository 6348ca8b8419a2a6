import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ERRORS } from '../../../src/http/interface/errors/catalogue.ts';
import { examplesOf } from '../../support/http/examples.ts';
import type { Cluster } from '../../support/http/api.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { startGranter } from '../../support/http/granter.ts';
import { openCluster } from '../../support/http/open.ts';
import type { Addresses } from '../../support/http/replicas.ts';
import { waitFor } from '../../support/wait-for.ts';

let cluster: Cluster;
let api: Addresses;
let call: Call;
let token: string;
let removeNode: () => Promise<void>;
let stopGranter: () => void;

beforeAll(async () => {
  cluster = await openCluster();
  ({ api } = cluster);
  removeNode = await addNode(cluster.client, gpuNode('node-test-gpu-openapi', 'TEST-GPU-OPENAPI', 8));
  const namespace = await cluster.namespace('http-openapi');
  const serves = (name: string): boolean => name === namespace;
  stopGranter = startGranter({ ...cluster, ...cluster.stores, serves });
  token = await cluster.key(namespace);
  call = clientOf(api.url, token);
  await waitFor('free GPUs', async () => (await call('GET', '/offers')).data.some((offer) => offer['available'] === 8));
});

afterAll(async () => {
  stopGranter();
  await removeNode();
  await cluster[Symbol.asyncDispose]();
});

describe('/openapi.json', () => {
  it('is served to anyone and cached by ETag', async () => {
    const first = await fetch(`${api.url}/openapi.json`);
    expect(first.headers.get('access-control-allow-origin')).toBe('*');
    expect(await first.json()).toMatchObject({ openapi: '3.1.1', info: { version: '1.0.0' } });
    const etag = first.headers.get('etag') ?? '';
    expect((await fetch(`${api.url}/openapi.json`, { headers: { 'if-none-match': etag } })).status).toBe(304);
  });

  it('has every pair of method and path of the interface, and what each may answer', async () => {
    const schema = z.object({
      paths: z.record(z.string(), z.record(z.string(), z.object({ responses: z.record(z.string(), z.unknown()) }))),
    });
    const { paths } = schema.parse(await (await fetch(`${api.url}/openapi.json`)).json());
    const pairs = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((one) => `${one} ${path}`),
    );
    expect(new Set(pairs)).toEqual(
      new Set([
        'post /chat/completions',
        'post /responses',
        'post /messages',
        'get /models',
        'post /completions',
        'post /embeddings',
        'post /rerank',
        'post /audio/transcriptions',
        // Beside the specification: what agents and engines of today have.
        'post /responses/compact',
        'post /score',
        'post /audio/translations',
        'post /audio/speech',
        'post /images/generations',
        'post /images/edits',
        'get /offers',
        'get /instances',
        'post /instances',
        'get /instances/{instanceId}',
        'patch /instances/{instanceId}',
        'delete /instances/{instanceId}',
        // Beside the specification: offers for an image, the tenant's ceilings, and a browser's way to a port.
        'post /offers/search',
        'get /limits',
        'get /usage',
        // For operators who signed in to the dashboard.
        'get /fleet',
        'post /instances/{instanceId}/links',
        // Beside the specification: what instances start from.
        'get /templates',
        'post /templates',
        'get /templates/{templateId}',
        'put /templates/{templateId}',
        'delete /templates/{templateId}',
        // Beside the specification: what a key sees of an instance, and credentials for private images.
        'get /instances/{instanceId}/logs',
        'get /instances/{instanceId}/events',
        'get /instances/{instanceId}/metrics',
        'get /registries',
        'post /registries',
        'delete /registries/{registryName}',
        // Beside the specification: who is told what happens.
        'get /webhooks',
        'post /webhooks',
        'get /webhooks/{webhookId}',
        'delete /webhooks/{webhookId}',
        'post /webhooks/{webhookId}/secret',
        'get /ssh-keys',
        'post /ssh-keys',
        'delete /ssh-keys/{sshKeyId}',
      ]),
    );
    expect(Object.keys(paths['/instances']?.['post']?.responses ?? {})).toEqual(
      expect.arrayContaining(['201', '400', '401', '403', '409', '413', '415', '422', '429', '500', '503']),
    );
  });
});

describe('every example works as it stands', () => {
  let id: string;

  it.each(examplesOf('createInstance'))('createInstance: %s', async (_name, { value }) => {
    const answer = await call('POST', '/instances', value);
    expect(answer.status, answer.text).toBe(201);
    id = answer.id;
  });

  it.each(examplesOf('searchOffers'))('searchOffers: %s', async (_name, { value }) => {
    const answer = await call('POST', '/offers/search', value);
    expect(answer.status, answer.text).toBe(200);
  });

  it.each(examplesOf('updateInstance'))('updateInstance: %s', async (_name, { value }) => {
    const answer = await call('PATCH', `/instances/${id}`, value);
    expect(answer.status, answer.text).toBe(200);
  });

  it.each(examplesOf('createTemplate'))('createTemplate: %s', async (_name, { value }) => {
    const answer = await call('POST', '/templates', value);
    expect(answer.status, answer.text).toBe(201);
    expect((await call('PUT', `/templates/${answer.id}`, value)).text).toBe(answer.text);
  });

  it.each(examplesOf('createSSHKey'))('createSSHKey: %s', async (_name, { value }) => {
    const answer = await call('POST', '/ssh-keys', value);
    expect(answer.status, answer.text).toBe(201);
  });
});

describe('/docs/api', () => {
  it('serves the renderer from here, under a policy that lets it load nothing from elsewhere', async () => {
    const page = await fetch(`${api.url}/docs/api`);
    expect(page.headers.get('content-type')).toMatch(/^text\/html/);
    expect(page.headers.get('content-security-policy')).toMatch(/default-src 'none'/);
    const html = await page.text();
    expect(html).not.toMatch(/https?:/);
    const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path ?? '');
    for (const path of files) expect((await fetch(`${api.url}${path}`)).status, path).toBe(200);
  });
});

describe('what programs read', () => {
  const links = (text: string): string[] => [...text.matchAll(/\]\((\/[^)#]*)\)/g)].map(([, path]) => path ?? '');

  it('/llms.txt has the form of llmstxt.org, needs no key, may be kept, and each of its links answers', async () => {
    const answer = await fetch(`${api.url}/llms.txt`);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
    expect(answer.headers.get('cache-control')).toBe('public, max-age=3600');
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    const etag = answer.headers.get('etag') ?? '';
    const text = await answer.text();
    expect(text).toMatch(/^# Berth\n\n> [^\n]+\n/);
    const lists = text.split(/^## /m).slice(1);
    expect(lists.length).toBeGreaterThan(1);
    for (const list of lists) expect(list).toMatch(/^[^\n]+\n\n(?:- \[[^\]]+\]\([^)]+\): [^\n]+\n)+\s*$/);
    expect(links(text)).toContain('/docs/api.md');
    for (const path of links(text)) expect((await fetch(`${api.url}${path}`)).status, path).toBe(200);
    for (const [, path] of text.matchAll(/`(\/api\/v1\/[a-z/-]+)`/g)) {
      const headers = { authorization: `Bearer ${token}` };
      expect((await fetch(`${api.url}${path}`, { method: 'OPTIONS', headers })).status, path).toBe(200);
    }
    expect(etag).toMatch(/^W?\/?"/);
  });

  it('/docs/api.md has every endpoint, every field of every schema and every error, and its links lead somewhere', async () => {
    const text = await (await fetch(`${api.url}/docs/api.md`)).text();
    const { paths, components } = z
      .object({
        paths: z.record(z.string(), z.record(z.string(), z.unknown())),
        components: z.object({
          schemas: z.record(z.string(), z.object({ properties: z.record(z.string(), z.unknown()).optional() })),
        }),
      })
      .parse(await (await fetch(`${api.url}/openapi.json`)).json());
    for (const [path, methods] of Object.entries(paths)) {
      for (const method of Object.keys(methods)) expect(text).toContain(`\n### ${method.toUpperCase()} ${path}\n`);
    }
    for (const [name, { properties = {} }] of Object.entries(components.schemas)) {
      const chapter = text.split(`\n### ${name}\n`)[1]?.split('\n#')[0] ?? '';
      for (const field of Object.keys(properties)) expect(chapter, name).toContain(`\n| \`${field}\` |`);
    }
    for (const code of Object.keys(ERRORS)) expect(text).toContain(`| \`${code}\` |`);
    const titles = new Set([...text.matchAll(/^### (\S+)$/gm)].map(([, title = '']) => `#${title.toLowerCase()}`));
    for (const [, anchor = ''] of text.matchAll(/\]\((#[^)]+)\)/g)) expect(titles, anchor).toContain(anchor);
  });

  it('the guides are handed out as Markdown, and each of their links leads somewhere', async () => {
    const index = await (await fetch(`${api.url}/llms.txt`)).text();
    const guides = links(index).filter((path) => path.endsWith('.md') && path !== '/docs/api.md');
    expect(guides.length).toBeGreaterThan(2);
    for (const path of guides) {
      const answer = await fetch(`${api.url}${path}`);
      expect(answer.headers.get('content-type')).toBe('text/markdown; charset=utf-8');
      const text = await answer.text();
      expect(text).toMatch(/^# /);
      for (const [, target = ''] of text.matchAll(/\]\((?!https?:)([^)\s#]+)/g)) {
        expect((await fetch(new URL(target, `${api.url}${path}`))).status, `${path}: ${target}`).toBe(200);
      }
    }
  });

  it('/docs answers Markdown to programs that ask for it, and the page to browsers and all others', async () => {
    const type = async (accept: string): Promise<string | null> =>
      (await fetch(`${api.url}/docs`, { headers: { accept } })).headers.get('content-type');
    expect(await type('text/markdown, */*;q=0.1')).toBe('text/markdown; charset=utf-8');
    for (const accept of ['*/*', 'text/html,application/xhtml+xml,*/*;q=0.8']) {
      expect(await type(accept)).toBe('text/html; charset=utf-8');
    }
  });
});

it('documents every code of the catalogue with what to do', () => {
  for (const [code, { help }] of Object.entries(ERRORS)) expect(help, code).toMatch(/\w{3,}.*\.$/);
});
