import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { z } from 'zod';
import { createKey } from '../../../src/access/create-key.ts';
import { EVENTS, SECRETS } from '../../../src/kube/types.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { REGISTRY_CREDENTIALS } from '../../../src/resources/registry-credential.ts';
import { CONTAINERD_SOCKET } from '../../../tools/lib/images/image.ts';
import { run } from '../../../tools/lib/shell.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { kubectlAs } from '../../support/chart-policies.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { describeWith } from '../../support/needs.ts';
import { PASSWORD, type PrivateRegistry, startRegistry, USER } from '../../support/registry/registry.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

let berth: BerthProcess;
let tenant: TestNamespace;
let stranger: TestNamespace;
let call: Call;
let other: Call;

beforeAll(async () => {
  const { kubeconfig } = inject('cluster');
  [tenant, stranger] = await Promise.all([testNamespace(), testNamespace()]);
  await kindsCounted(tenant.client);
  berth = await startBerth(kubeconfig, 'all', 'berth-system', { env: { BERTH_IMAGE_PULL_POLICY: 'Always' } });
  const callOf = async ({ name, client }: TestNamespace): Promise<Call> => {
    const { token } = await createKey(client, { namespace: name, displayName: 'registries' });
    const made = clientOf(berth.url, token);
    await waitFor('the key', async () => (await made('GET', '/offers')).status === 200);
    return made;
  };
  call = await callOf(tenant);
  other = await callOf(stranger);
});
afterAll(async () => {
  await berth[Symbol.asyncDispose]();
  await Promise.all([tenant[Symbol.asyncDispose](), stranger[Symbol.asyncDispose]()]);
});

function credentials(name: string, password = PASSWORD, server = 'registry.example.com') {
  return { name, server, username: USER, password };
}

async function names(from: Call): Promise<unknown[]> {
  return (await from('GET', '/registries')).data.map(({ name }) => name);
}

describe('credentials of registries', () => {
  it('are registered, listed without the password, and deleted with their Secret', async () => {
    const made = await call('POST', '/registries', credentials('mine', 'a"b:ü'));
    expect([made.status, made.headers.get('location')], made.text).toEqual([201, '/api/v1/registries/mine']);
    expect(made.json).toMatchObject({
      id: 'mine',
      object: 'registry',
      server: 'registry.example.com',
      username: USER,
    });
    expect(Object.keys(made.json)).not.toContain('password');
    await waitFor('the list', async () => (await names(call)).includes('mine'));
    expect(await names(other)).toEqual([]);
    const ref = { namespace: tenant.name, name: 'mine' };
    const secret = await tenant.client.get(SECRETS, ref);
    expect(secret.type).toBe('kubernetes.io/dockerconfigjson');
    const config = Buffer.from(secret.data?.['.dockerconfigjson'] ?? '', 'base64').toString();
    const auth = Buffer.from(`${USER}:a"b:ü`).toString('base64');
    expect(JSON.parse(config)).toEqual({
      auths: { 'registry.example.com': { username: USER, password: 'a"b:ü', auth } },
    });
    const again = await call('POST', '/registries', credentials('mine'));
    expect([again.status, again.error['code']]).toEqual([409, 'registry_exists']);
    expect((await other('DELETE', '/registries/mine')).status).toBe(404);
    expect((await call('DELETE', '/registries/mine')).json).toEqual({ id: 'mine', object: 'registry', deleted: true });
    // A new password under the same name: the old Secret goes first.
    expect((await call('POST', '/registries', credentials('mine', 'new'))).status).toBe(201);
    const renewed = await tenant.client.get(SECRETS, ref);
    expect(Buffer.from(renewed.data?.['.dockerconfigjson'] ?? '', 'base64').toString()).toContain('"new"');
    expect((await call('DELETE', '/registries/mine')).status).toBe(200);
    await waitFor('the Secret to go', async () => {
      const { items } = await tenant.client.list(SECRETS, { namespace: tenant.name });
      return items.every(({ metadata }) => metadata.name !== ref.name);
    });
    expect((await call('DELETE', '/registries/mine')).status).toBe(404);
  });

  it('leave no Secret when they are deleted as an owner that lets its own stay', async () => {
    const secrets = async (): Promise<string[]> =>
      (await tenant.client.list(SECRETS, { namespace: tenant.name })).items.map(({ metadata }) => metadata.name);
    const path = `/apis/berth.dev/v1alpha1/namespaces/${tenant.name}/registrycredentials`;
    for (const name of ['orphan', 'restored'])
      expect((await call('POST', '/registries', credentials(name))).status).toBe(201);
    // What a tool that restores objects leaves out.
    await tenant.client.patch(
      SECRETS,
      { namespace: tenant.name, name: 'restored' },
      { metadata: { ownerReferences: null } },
      { type: 'merge' },
    );
    await tenant.client.raw('DELETE', `${path}/orphan`, { propagationPolicy: 'Orphan' });
    await tenant.client.raw('DELETE', `${path}/restored`);
    await waitFor('the Secrets to go', async () => {
      const left = await secrets();
      return !left.includes('orphan') && !left.includes('restored');
    });
    for (const name of ['orphan', 'restored']) {
      await waitFor(
        'the name to be free',
        async () => (await call('POST', '/registries', credentials(name))).status === 201,
      );
      expect((await call('DELETE', `/registries/${name}`)).status).toBe(200);
    }
  });

  it.each([
    [{ ...credentials('Upper'), password: 'hunter2' }, ['name']],
    [{ ...credentials('x', 'hunter2'), server: 'https://ghcr.io/' }, ['server']],
    [{ ...credentials('x', 'hunter2'), username: 'a:b' }, ['username']],
    [{ name: 'x', server: 'ghcr.io', username: 'a', pasword: 'hunter2' }, ['password', 'pasword']],
  ])('are refused field by field, and no answer has the password: %j', async (body, fields) => {
    const answer = await call('POST', '/registries', body);
    expect(answer.status).toBe(422);
    expect((answer.error['fields'] as { path: string }[]).map(({ path }) => path)).toEqual(fields);
    expect(answer.text).not.toContain('hunter2');
  });

  it('take the place of no Secret that the tenant has', async () => {
    const name = 'taken';
    await tenant.client.create(SECRETS, { metadata: { namespace: tenant.name, name }, type: 'Opaque', data: {} });
    const answer = await call('POST', '/registries', credentials('taken', 'hunter2'));
    expect([answer.status, answer.error['code']], answer.text).toEqual([409, 'registry_exists']);
    expect(answer.error['message']).toContain(`A Secret ${name} exists`);
    const { items } = await tenant.client.list(REGISTRY_CREDENTIALS, { namespace: tenant.name });
    expect(items.map(({ metadata }) => metadata.name)).not.toContain(name);
    expect((await tenant.client.get(SECRETS, { namespace: tenant.name, name })).type).toBe('Opaque');
    expect(berth.log()).not.toContain('hunter2');
  });
});

describeWith('real node', 'mmdebstrap')('private images', () => {
  let registry: PrivateRegistry;
  let image: string;

  beforeAll(async () => {
    const { initPid = 0 } = inject('cluster');
    registry = await startRegistry(initPid);
    image = await registry.push('private/app:1');
    await call('POST', '/registries', credentials('good', PASSWORD, registry.server));
    await call('POST', '/registries', credentials('wrong', 'not it', registry.server));
  });
  afterAll(async () => {
    await registry[Symbol.asyncDispose]();
  });

  async function create(where: TestNamespace, name: string, secrets: string[]): Promise<void> {
    const gpu = { product: 'NVIDIA-L4', count: 1 };
    const imagePullSecrets = secrets.map((one) => ({ name: one }));
    const spec = { gpu, image, runtype: 'args', command: ['/bin/sleep', '1000000'], imagePullSecrets };
    await where.client.create(GPU_INSTANCES, { metadata: { name, namespace: where.name }, spec } as never);
  }

  /** Waits for a reason of the instance, and returns the message beside it. */
  async function reason(from: Call, name: string, wanted: string): Promise<string> {
    return waitFor(
      `${name}: ${wanted}`,
      async () => {
        const { json } = await from('GET', `/instances/${name}`);
        return json['reason'] === wanted && z.string().parse(json['message']);
      },
      100_000,
    );
  }

  async function warningsOf(name: string): Promise<string> {
    return JSON.stringify((await call('GET', `/instances/${name}`)).json['warnings']);
  }

  async function remove(where: TestNamespace, from: Call, name: string): Promise<void> {
    await where.client.delete(GPU_INSTANCES, { name, namespace: where.name });
    await waitFor('the end', async () => (await from('GET', `/instances/${name}`)).status === 404, 60_000);
  }

  async function imagesOfNode(): Promise<string> {
    const { initPid, programs = '' } = inject('cluster');
    const inside = ['--target', String(initPid), '--mount', '--net', join(programs, 'ctr')];
    return (await run('nsenter', [...inside, '-a', CONTAINERD_SOCKET, '-n', 'k8s.io', 'images', 'ls', '-q'])).stdout;
  }

  it('start with credentials, and with no others', async () => {
    await create(tenant, 'refused', ['wrong']);
    expect(await reason(call, 'refused', 'ImagePullBackOff')).toContain(`${image} cannot be pulled`);
    expect(await imagesOfNode()).not.toContain(image);
    expect(await warningsOf('refused')).toContain(`${image} is not on real-0 yet`);
    await remove(tenant, call, 'refused');
    await create(tenant, 'private', ['good']);
    await reason(call, 'private', 'Running');
    expect(await warningsOf('private')).not.toContain('is not on');
    await remove(tenant, call, 'private');
    expect(await imagesOfNode()).toContain(image);
  });

  it('are not started from the cache of the node by another tenant', async () => {
    expect(await imagesOfNode()).toContain(image);
    await create(stranger, 'thief', []);
    expect(await reason(other, 'thief', 'ImagePullBackOff')).toContain(`${image} cannot be pulled`);
    // Nor with the name of the other tenant's Secret, which is not in this namespace.
    await create(stranger, 'namesake', ['good']);
    expect(await reason(other, 'namesake', 'ImagePullBackOff')).toContain('good');
    const { items } = await stranger.client.list(EVENTS, { namespace: stranger.name });
    expect(items.filter(({ reason: why }) => why === 'Started')).toEqual([]);
  });
});

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const KINDS = ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'] as const;
const PATHS = ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'].map(
  (kind) => `${ADMISSION}/${kind}`,
);
const OWN = { name: 'test-secrets' };
const API = 'system:serviceaccount:berth-system:berth-api';
const CONTROLLER = 'system:serviceaccount:berth-system:berth-controller';
const DASHBOARD = 'system:serviceaccount:berth-system:berth-dashboard';

describe('what the api role may store', () => {
  /** What the API server would say to an account with all rights that makes this Secret. */
  async function make(account: string, metadata: object, type = 'kubernetes.io/dockerconfigjson'): Promise<string> {
    const owner = { apiVersion: 'berth.dev/v1alpha1', kind: 'RegistryCredential', name: 'x', uid: 'of-nothing' };
    const labels = { 'berth.dev/registry': 'x' };
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      type,
      metadata: { namespace: tenant.name, name: 'x', labels, ownerReferences: [owner], ...metadata },
      data: { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') },
    };
    const { programs, kubeconfig } = inject('cluster');
    const who = ['--kubeconfig', kubeconfig, '--as', account, '--as-group', 'system:masters'];
    const command = ['create', '--dry-run=server', '-f', '-'];
    const program = programs === undefined ? 'kubectl' : join(programs, 'kubectl');
    const { code, stdout, stderr } = await run(program, [...who, ...command], { input: JSON.stringify(secret) });
    return code === 0 ? 'done' : `${stdout}${stderr}`;
  }

  /** The admission policy of the chart over Secrets holds here. */
  beforeAll(async () => {
    const chart = readFileSync(new URL('../../../deploy/base/admission.yaml', import.meta.url), 'utf8');
    const all = parseAllDocuments(chart).map(
      (one) => one.toJS() as { kind: string; metadata: { name: string }; spec: object },
    );
    for (const [index, kind] of KINDS.entries()) {
      const found = all.find((one) => one.kind === kind && one.metadata.name === 'berth-secrets');
      const spec = { ...found?.spec, ...(index === 1 && { policyName: OWN.name }) };
      await tenant.client.raw('POST', PATHS[index] ?? '', { ...found, metadata: OWN, spec });
    }
    await waitFor('the policy to hold', async () => (await make(API, { name: 'other' })) !== 'done');
  });

  afterAll(async () => {
    for (const path of PATHS.toReversed()) await tenant.client.raw('DELETE', `${path}/${OWN.name}`);
  });

  it('the api role makes the Secret of a RegistryCredential', async () => {
    expect(await make(API, {})).toBe('done');
  });

  it.each([
    ['of another name', { name: 'mine' }, undefined],
    ['that another RegistryCredential owns', { name: 'y' }, undefined],
    ['of another type', {}, 'Opaque'],
    ['that nothing owns', { ownerReferences: [] }, undefined],
    ['without the label of its RegistryCredential', { labels: {} }, undefined],
    ['among those of the cluster', { namespace: 'kube-system' }, undefined],
  ])('the api role makes no Secret %s', async (_which, metadata, type) => {
    expect(await make(API, metadata, type)).toContain('this role of Berth makes the Secret berth-port-session');
  });

  it.each(['berth-dashboard-session', 'berth-dashboard-ended'])(
    'only the dashboard makes its Secret %s',
    async (name) => {
      const metadata = { namespace: 'berth-system', name, labels: {}, ownerReferences: [] };
      expect(await make(DASHBOARD, metadata, 'Opaque')).toBe('done');
      expect(await make(DASHBOARD, { ...metadata, namespace: tenant.name }, 'Opaque')).toContain(
        'the Secret berth-dashboard-session or berth-dashboard-ended in its own namespace',
      );
      expect(await make(API, metadata, 'Opaque')).toContain('this role of Berth makes the Secret berth-port-session');
    },
  );

  it('the controller deletes those of RegistryCredentials, and no other', async () => {
    const secret = async (name: string, metadata: object, type = 'kubernetes.io/dockerconfigjson'): Promise<string> => {
      const data = { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') };
      await tenant.client.create(SECRETS, { metadata: { namespace: tenant.name, name, ...metadata }, type, data });
      return kubectlAs({ namespace: tenant.name, user: CONTROLLER }, ['delete', 'secret', name]);
    };
    const refusal = 'the Secrets that were made of RegistryCredentials, and no other';
    expect(await secret('own', {})).toContain(refusal);
    expect(await secret('namesake', { labels: { 'berth.dev/registry': 'another' } })).toContain(refusal);
    expect(await secret('opaque', { labels: { 'berth.dev/registry': 'opaque' } }, 'Opaque')).toContain(refusal);
    expect(await secret('made', { labels: { 'berth.dev/registry': 'made' } })).toBe('done');
    const all = ['delete', 'secret', '--all'];
    expect(await kubectlAs({ namespace: tenant.name, user: CONTROLLER }, all)).toContain(refusal);
  });

  it('no other role of Berth makes one', async () => {
    expect(await make(CONTROLLER, {})).toContain('this role of Berth makes the Secret berth-ssh-host-key');
  });
});
