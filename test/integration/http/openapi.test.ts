import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ERRORS } from '../../../src/http/errors/catalogue.ts';
import { EXAMPLES } from '../../../src/http/openapi/examples.ts';
import type { Cluster } from '../../support/http/api.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { startGranter } from '../../support/http/granter.ts';
import { openCluster } from '../../support/http/open.ts';
import type { Addresses } from '../../support/http/replicas.ts';
import { waitFor } from '../../support/wait-for.ts';

const exec = promisify(execFile);

/** What a program prints; what it printed stands in the failure. */
async function run(program: string, args: string[]): Promise<string> {
  const { stdout, stderr } = await exec(program, args).catch((error: { stdout: string; stderr: string }) => {
    throw new Error(`${program}: ${error.stdout}${error.stderr}`);
  });
  return stdout === '' ? stderr : stdout;
}

const bin = (name: string): string => join(process.cwd(), 'node_modules/.bin', name);

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
        'get /offers',
        'get /instances',
        'post /instances',
        'get /instances/{instanceId}',
        'patch /instances/{instanceId}',
        'delete /instances/{instanceId}',
        // Beside the specification: offers for an image, the tenant's ceilings, and a browser's way to a port.
        'post /offers/search',
        'get /limits',
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
        'get /registries',
        'post /registries',
        'delete /registries/{registryName}',
        'get /ssh-keys',
        'post /ssh-keys',
        'delete /ssh-keys/{sshKeyId}',
        // Beside the specification: what the operator allows the tenant.
        'get /limits',
      ]),
    );
    expect(Object.keys(paths['/instances']?.['post']?.responses ?? {})).toEqual(
      expect.arrayContaining(['201', '400', '401', '403', '409', '413', '415', '422', '429', '500', '503']),
    );
  });
});

describe('every example works as it stands', () => {
  let id: string;

  it.each(Object.entries(EXAMPLES.createInstance))('createInstance: %s', async (_name, { value }) => {
    const answer = await call('POST', '/instances', value);
    expect(answer.status, answer.text).toBe(201);
    id = answer.id;
  });

  it.each(Object.entries(EXAMPLES.searchOffers))('searchOffers: %s', async (_name, { value }) => {
    const answer = await call('POST', '/offers/search', value);
    expect(answer.status, answer.text).toBe(200);
  });

  it.each(Object.entries(EXAMPLES.updateInstance))('updateInstance: %s', async (_name, { value }) => {
    const answer = await call('PATCH', `/instances/${id}`, value);
    expect(answer.status, answer.text).toBe(200);
  });

  it.each(Object.entries(EXAMPLES.createTemplate))('createTemplate: %s', async (_name, { value }) => {
    const answer = await call('POST', '/templates', value);
    expect(answer.status, answer.text).toBe(201);
    expect((await call('PUT', `/templates/${answer.id}`, value)).text).toBe(answer.text);
  });

  it.each(Object.entries(EXAMPLES.createSshKey))('createSSHKey: %s', async (_name, { value }) => {
    const answer = await call('POST', '/ssh-keys', value);
    expect(answer.status, answer.text).toBe(201);
  });
});

it('makes a typed client that compiles and works', async () => {
  const parent = join(process.cwd(), '.berth');
  await mkdir(parent, { recursive: true });
  const folder = await mkdtemp(join(parent, 'client-'));
  try {
    const description = await (await fetch(`${api.url}/openapi.json`)).text();
    await writeFile(join(folder, 'openapi.json'), description);
    await run(bin('oazapfts'), [join(folder, 'openapi.json'), join(folder, 'client.ts')]);
    const program = `
      import { defaults, createInstance, listOffers, type Instance } from './client.ts';
      defaults.baseUrl = '${api.url}/api/v1';
      defaults.headers = { authorization: 'Bearer ${token}' };
      const offers = await listOffers();
      if (offers.status !== 200) throw new Error(String(offers.status));
      const cheapest: number | undefined = offers.data.data.find(({ available }) => available > 0)?.id;
      const made = await createInstance({ ask_id: cheapest ?? null, name: 'typed' });
      if (made.status !== 201) throw new Error(String(made.status));
      const instance: Instance = made.data;
      console.log(instance.name, instance.state);
    `;
    const file = join(folder, 'program.ts');
    await writeFile(file, program);
    const flags = '--ignoreConfig --noEmit --strict --module nodenext --target es2024 --types node';
    await run(bin('tsc'), [...flags.split(' '), '--allowImportingTsExtensions', '--skipLibCheck', file]);
    expect(await run(process.execPath, [file])).toMatch(/^typed (pending|scheduling|pulling|starting|running)\n$/);
  } finally {
    await rm(folder, { recursive: true });
  }
});

describe('/docs', () => {
  it('serves the renderer from here, under a policy that lets it load nothing from elsewhere', async () => {
    const page = await fetch(`${api.url}/docs`);
    expect(page.headers.get('content-type')).toMatch(/^text\/html/);
    expect(page.headers.get('content-security-policy')).toMatch(/default-src 'none'/);
    const html = await page.text();
    expect(html).not.toMatch(/https?:/);
    const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path ?? '');
    for (const path of files) expect((await fetch(`${api.url}${path}`)).status, path).toBe(200);
  });
});

it('documents every code of the catalogue with what to do', () => {
  for (const [code, { help }] of Object.entries(ERRORS)) expect(help, code).toMatch(/\w{3,}.*\.$/);
});
