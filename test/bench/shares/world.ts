import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import type { AddressInfo } from 'node:net';
import { createKey } from '../../../src/access/create-key.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { ENDPOINT_SLICES, NAMESPACES, SERVICES } from '../../../src/kube/types.ts';
import { TENANT_POLICIES, tenantPolicySpecSchema } from '../../../src/resources/tenants/tenant-policy.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { newIdentity } from '../../e2e/support/ssh.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { clientOf } from '../../support/http/client.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { waitFor } from '../../support/wait-for.ts';

const NODES = 8;
const GPUS = 8;
/** Label of the namespaces of one run. */
const SIDE = 'berth.dev/bench';
/** What the operator lets each of the two tenants have. */
const CEILINGS = { gpus: [{ pool: '*', product: '*', max: 24 }] };
const ANSWER = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'fine',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

/** One side of the measurement: a tenant with keys, an SSH key and an instance. */
export interface Side {
  namespace: string;
  tokens: string[];
  privateKey: string;
  instance: string;
  /** The name with which SSH clients log in to the instance. */
  user: string;
}

/** What an attack or a call needs to know, as JSON. */
export interface Target {
  http: number;
  ssh: number;
  side: Side;
}

export interface World extends AsyncDisposable {
  berth: BerthProcess;
  http: number;
  attacker: Side;
  honest: Side;
}

/** Resident memory of a process in MiB. */
export function residentMib(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
}

/** Seconds of CPU that a process has used. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** An engine that answers `fine` at once, never answers `hang`, and breaks off at `reset`. */
async function startEngine(): Promise<{ host: string; port: number; close: () => void }> {
  const json = (response: ServerResponse, body: unknown): void => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  const server = createServer((request, response) => {
    if (request.url === '/v1/models') {
      const data = ['fine', 'hang', 'reset'].map((id) => ({ id, object: 'model', created: 1, owned_by: 'vllm' }));
      return json(response, { object: 'list', data });
    }
    if (request.url !== '/v1/chat/completions') return response.writeHead(404).end();
    let tail = '';
    request.on('data', (part: Buffer) => (tail = (tail + part.toString('latin1')).slice(-4096)));
    request.on('end', () => {
      if (tail.includes('"reset"')) request.socket.destroy();
      else if (!tail.includes('"hang"')) json(response, ANSWER);
    });
  });
  const addresses = Object.values(networkInterfaces()).flat();
  // The API server refuses the loopback in an EndpointSlice; an address of this machine stays on it all the same.
  const host = addresses.find((one) => one?.family === 'IPv4' && !one.internal)?.address;
  if (host === undefined) throw new Error('The machine has no IPv4 address beside the loopback.');
  server.listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { host, port, close: () => server.close().closeAllConnections() };
}

/** A model that all tenants share: only in Berth's own namespace an address counts that no pod stands behind. */
async function addModel(client: KubeClient, namespace: string, engine: { host: string; port: number }): Promise<void> {
  const labels = { 'berth.dev/model-server': 'true' };
  await client.create(SERVICES, {
    metadata: { name: 'engine', namespace, labels },
    spec: { ports: [{ name: 'http', port: 80 }] },
  });
  await client.create(ENDPOINT_SLICES, {
    metadata: { name: 'engine-1', namespace, labels: { ...labels, 'kubernetes.io/service-name': 'engine' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: engine.port }],
    endpoints: [{ addresses: [engine.host], conditions: { ready: true } }],
  });
}

interface SideOptions {
  base: string;
  name: string;
  keys: number;
  /** Berth's own namespace. */
  system: string;
}

async function makeSide(client: KubeClient, { base, name, keys, system }: SideOptions): Promise<Side> {
  const namespace = `bench-${name}-${process.pid}`;
  await client.create(NAMESPACES, {
    metadata: { name: namespace, labels: { 'berth.dev/tenant': 'true', [SIDE]: system } },
  });
  const tokens: string[] = [];
  for (let count = 0; count < keys; count += 1) tokens.push((await createKey(client, { namespace })).token);
  const identity = newIdentity();
  const call = clientOf(base, tokens[0] ?? '');
  await waitFor('the key to be known', async () => (await call('GET', '/offers')).status === 200);
  await call('POST', '/ssh-keys', { name: 'bench', public_key: identity.publicKey });
  const { id } = await call('POST', '/instances', { name: 'bench', disk_gb: 1 });
  const user = `${id}.${namespace}`;
  return { namespace, tokens, privateKey: identity.privateKey, instance: id, user };
}

/** The whole of Berth in one process as `npm start` runs it, simulated nodes, an attacker and an honest tenant. */
export async function makeWorld(kubeconfig: string): Promise<World> {
  const connection = await loadKubeConfig({ kubeconfig });
  const client = createKubeClient(connection, { clock: systemClock() });
  const system = `bench-system-${process.pid}`;
  await client.create(NAMESPACES, { metadata: { name: system } });
  const spec = tenantPolicySpecSchema.parse({ ...CEILINGS, namespaceLabels: { [SIDE]: system } });
  await client.create(TENANT_POLICIES, { metadata: { name: system }, spec });
  const names = Array.from({ length: NODES }, (_, index) => `${system}-${index}`);
  const remove = await Promise.all(names.map((name) => addNode(client, gpuNode(name, `SHARES-${process.pid}`, GPUS))));
  const berth = await startBerth(kubeconfig, 'all', system);
  const engine = await startEngine();
  const attacker = await makeSide(client, { base: berth.url, name: 'attacker', keys: 9, system });
  const honest = await makeSide(client, { base: berth.url, name: 'honest', keys: 1, system });
  await addModel(client, system, engine);
  for (const side of [attacker, honest]) {
    const call = clientOf(berth.url, side.tokens[0] ?? '');
    await waitFor('the model', async () => (await call('GET', '/models')).data.some(({ id }) => id === 'fine'), 60_000);
  }
  return {
    berth,
    http: Number(new URL(berth.url).port),
    attacker,
    honest,
    async [Symbol.asyncDispose]() {
      for (const { namespace } of [attacker, honest]) await client.delete(NAMESPACES, { name: namespace });
      await berth[Symbol.asyncDispose]();
      engine.close();
      await Promise.all(remove.map((one) => one()));
      await client.delete(TENANT_POLICIES, { name: system });
      await client.delete(NAMESPACES, { name: system });
      await client.close();
    },
  };
}
