import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';
import { PythonClient } from '../../support/generated/python-client.ts';
import type { Cluster } from '../../support/http/api.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { startGranter } from '../../support/http/granter.ts';
import { openCluster } from '../../support/http/open.ts';
import { describeWith } from '../../support/needs.ts';
import { waitFor } from '../../support/wait-for.ts';
import { MODEL_ENDPOINTS } from '../../../src/wire/model-endpoints.ts';

// Clients that others generate from /openapi.json, used from the first key to the end of an instance.

const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@laptop';
const REGISTRY = { name: 'mine', server: 'registry.example.com', username: 'me', password: 'of the registry' };
const WANTED = {
  name: 'generated',
  template_image: 'registry.example.com/team/app:1',
  registry: REGISTRY.name,
  env: { GREETING: 'hello' },
  ports: [{ container_port: 8080, protocol: 'tcp' }],
  on_start: 'httpd -p 8080',
  gpu: { name: 'TEST-GPU-CLIENTS', count: 1 },
  max_duration: '1h',
};

let cluster: Cluster;
let url: string;
let token: string;
let call: Call;
let folder: string;
let removeNode: () => Promise<void>;
let stopGranter: () => void;

beforeAll(async () => {
  cluster = await openCluster();
  ({ url } = cluster.api);
  removeNode = await addNode(cluster.client, gpuNode('node-test-gpu-clients', 'TEST-GPU-CLIENTS', 8));
  const namespace = await cluster.namespace('http-clients');
  stopGranter = startGranter({ ...cluster, ...cluster.stores, serves: (name) => name === namespace });
  token = await cluster.key(namespace);
  call = clientOf(url, token);
  const isFree = (offer: Record<string, unknown>): boolean => offer['gpu_name'] === 'TEST-GPU-CLIENTS';
  await waitFor('free GPUs', async () => (await call('GET', '/offers')).data.some(isFree));
  const parent = join(ROOT, '.berth');
  await mkdir(parent, { recursive: true });
  folder = await mkdtemp(join(parent, 'client-'));
}, 300_000);

afterAll(async () => {
  stopGranter();
  await removeNode();
  await rm(folder, { recursive: true });
  await cluster[Symbol.asyncDispose]();
});

it('the description declares each way to send a key, and where each may be used', async () => {
  const { security, components, paths } = (await (await fetch(`${url}/openapi.json`)).json()) as {
    security: unknown;
    components: { securitySchemes: Record<string, object> };
    paths: Record<string, Record<string, { security?: unknown }>>;
  };
  expect(components.securitySchemes).toMatchObject({
    key: { type: 'http', scheme: 'bearer' },
    anthropicKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key' },
    azureKey: { type: 'apiKey', in: 'header', name: 'Api-Key' },
  });
  expect(security).toEqual([{ key: [] }]);
  const others = Object.entries(paths).flatMap(([path, methods]) =>
    Object.values(methods).some((one) => JSON.stringify(one.security)?.includes('anthropicKey')) ? [path] : [],
  );
  const models = MODEL_ENDPOINTS.flatMap((one) => ('openApi' in one ? [one.path] : []));
  expect(others.toSorted()).toEqual(models.toSorted());
});

describeWith('Python venv')('the Python client of openapi-python-client', () => {
  let client: PythonClient;

  beforeAll(async () => {
    client = await PythonClient.generate({ url, token }, join(folder, 'python'));
  }, 300_000);

  it('rents, reads, extends and gives back', async () => {
    const key = await client.step('add_key', { name: 'laptop', public_key: PUBLIC_KEY });
    await client.step('add_registry', REGISTRY);
    const offers = (await client.step('offers'))['data'] as { gpu_name: string }[];
    expect(offers.map(({ gpu_name: name }) => name)).toContain('TEST-GPU-CLIENTS');

    const made = await client.step('rent', WANTED);
    const id = String(made['id']);
    expect(made).toMatchObject({ object: 'instance', name: 'generated', env_names: ['GREETING'], max_duration: '1h' });
    // The models of the client lose nothing of the record on the way.
    const [shown, { json: raw }] = [await client.step('show', { id }), await call('GET', `/instances/${id}`)];
    expect(Object.keys(shown).toSorted()).toEqual(Object.keys(raw).toSorted());
    expect(shown).toMatchObject({ ports: raw['ports'], registry: 'mine', gpu_count: 1 });
    const change = { max_duration: '2h', label: 'longer' };
    expect(await client.step('change', { id, change })).toMatchObject(change);
    expect(await client.step('events', { id })).toMatchObject({ instance_id: id, ended_at: null });
    expect(await client.step('give_back', { id })).toEqual({ id, object: 'instance', deleted: true });

    await client.step('remove_registry', { name: REGISTRY.name });
    expect(await client.step('remove_key', { id: key['id'] })).toMatchObject({ deleted: true });
  });

  it('has the errors of the server as objects with code and fields', async () => {
    const { error } = await client.step('refusal', { ...WANTED, max_duration: 'soon' });
    expect(error).toMatchObject({ code: 'validation_failed', fields: [{ path: 'max_duration' }] });
  });

  it('sends the key in the second way too', async () => {
    expect(await client.step('models_by_api_key')).toMatchObject({ object: 'list' });
  });
});

describe('the TypeScript client of oazapfts', () => {
  const exec = promisify(execFile);
  const bin = (name: string): string => join(ROOT, 'node_modules/.bin', name);

  /** What a program prints; what it printed stands in the failure. */
  async function run(program: string, args: string[]): Promise<string> {
    const { stdout, stderr } = await exec(program, args).catch((error: { stdout: string; stderr: string }) => {
      throw new Error(`${program}: ${error.stdout}${error.stderr}`);
    });
    return stdout === '' ? stderr : stdout;
  }

  it('compiles, rents, reads, extends and gives back', async () => {
    await writeFile(join(folder, 'openapi.json'), await (await fetch(`${url}/openapi.json`)).text());
    await run(bin('oazapfts'), [join(folder, 'openapi.json'), join(folder, 'client.ts')]);
    // The Secret of credentials goes some time after them, and until then its name is taken.
    const registry = { ...REGISTRY, name: 'typed' };
    const program = `
      import { createInstance, createRegistry, createSshKey, defaults, deleteInstance, deleteRegistry, deleteSshKey,
        getInstance, getInstanceEvents, listModels, listOffers, updateInstance, type CreateInstance,
        type Instance } from './client.ts';

      defaults.baseUrl = '${url}/api/v1';
      defaults.headers = { authorization: 'Bearer ${token}' };

      /** The body of an answer with this status; anything else ends the program. */
      function must<A extends { status: number }, S extends A['status']>(answer: A, status: S): Extract<A, { status: S }> {
        if (answer.status !== status) throw new Error(JSON.stringify(answer));
        return answer as Extract<A, { status: S }>;
      }

      const key = must(await createSshKey({ name: 'laptop', public_key: '${PUBLIC_KEY}' }), 201).data;
      must(await createRegistry(${JSON.stringify(registry)}), 201);
      const offers = must(await listOffers(), 200).data.data;
      if (!offers.some(({ gpu_name, available }) => gpu_name === 'TEST-GPU-CLIENTS' && available > 0)) throw new Error();
      const wanted: CreateInstance = ${JSON.stringify({ ...WANTED, registry: registry.name })};
      const made: Instance = must(await createInstance(wanted), 201).data;
      const shown: Instance = must(await getInstance(made.id), 200).data;
      const changed: Instance = must(await updateInstance(made.id, { max_duration: '2h' }), 200).data;
      const refused = must(await createInstance({ ...wanted, max_duration: 'soon' }), 422).data.error;
      const history = must(await getInstanceEvents(made.id), 200).data;
      const models = must(await listModels({}, { headers: { authorization: undefined, 'x-api-key': '${token}' } }), 200);
      const gone = must(await deleteInstance(made.id), 200).data;
      must(await deleteRegistry('${registry.name}'), 200);
      must(await deleteSshKey(String(key.id)), 200);
      console.log(JSON.stringify([shown.env_names, shown.registry, changed.max_duration, refused.code,
        refused.fields?.[0]?.path, history.instance_id === made.id, models.data.object, gone.deleted]));
    `;
    const file = join(folder, 'program.ts');
    await writeFile(file, program);
    const flags = '--ignoreConfig --noEmit --strict --module nodenext --target es2024 --types node';
    await run(bin('tsc'), [...flags.split(' '), '--allowImportingTsExtensions', '--skipLibCheck', file]);
    expect(JSON.parse(await run(process.execPath, [file]))).toEqual([
      ['GREETING'],
      'typed',
      '2h',
      'validation_failed',
      'max_duration',
      true,
      'list',
      true,
    ]);
  });
});
