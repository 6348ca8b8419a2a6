import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ensurePriorityClasses } from '../../../src/controllers/priority-classes.ts';
import { SECRETS } from '../../../src/kube/types.ts';
import { MODEL_SERVERS, type ModelServer } from '../../../src/resources/model-servers/model-server.ts';
import type { Rule } from '../../support/accounts.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { holdPolicies, kubectlAs } from '../../support/chart-policies.ts';
import type { Cluster } from '../../support/http/api.ts';
import { openCluster } from '../../support/http/open.ts';
import { type OutsideEngine, startOutside } from '../../support/outside-server.ts';
import { RoleAccount, writeKubeconfigOf } from '../../support/role-account.ts';
import { waitFor } from '../../support/wait-for.ts';

const KEY = 'sk-outside-0123456789';
const OLD_KEY = 'sk-outside-of-yesterday';
const SECRET = 'provider-key';
const ENV = { BERTH_ENGINE_SECRETS: SECRET, BERTH_OUTSIDE_MODELS: 'true' };

/** What the chart adds to the roles for `models.outside.enabled`; its own tests compare this with what it renders. */
const READS: Rule[] = [
  { apiGroups: ['berth.dev'], resources: ['modelservers'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['secrets'], resourceNames: [SECRET], verbs: ['get'] },
];
const WRITES: Rule[] = [{ apiGroups: ['berth.dev'], resources: ['modelservers/status'], verbs: ['patch'] }];

describe('a server outside the cluster, with the rights of the roles alone', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-outside-'));
  let cluster: Cluster;
  let own: string;
  let tenant: string;
  let outside: OutsideEngine;
  let api: BerthProcess;
  let controller: BerthProcess;
  let key: string;
  const rights: RoleAccount[] = [];

  async function roleProcess(role: string, rules: readonly Rule[]): Promise<BerthProcess> {
    const account = await RoleAccount.make({ client: cluster.client, name: own }, role, rules);
    rights.push(account);
    const { kubeconfig } = inject('cluster');
    const config = await writeKubeconfigOf(join(folder, role), kubeconfig, await account.token());
    return startBerth(config, role, own, { env: ENV });
  }

  async function put(apiKey: string): Promise<void> {
    const data = { 'api-key': Buffer.from(apiKey).toString('base64') };
    await cluster.client.patch(SECRETS, { namespace: own, name: SECRET }, { data }, { type: 'merge' });
  }

  const providerIn = (namespace: string): ModelServer => ({
    metadata: { namespace, name: 'provider' },
    spec: {
      baseURL: outside.baseURL,
      caBundle: outside.ca,
      credentialSecret: SECRET,
      dialects: ['chat'],
      tenants: { matchLabels: { 'kubernetes.io/metadata.name': tenant } },
      models: [{ name: 'large', upstreamName: 'large-2026', price: { input: '3', output: '15', currency: 'USD' } }],
    },
  });

  /** The reason of the condition, once the controller has looked at the server as it is now. */
  async function looked(reason: string): Promise<void> {
    const metadata = { annotations: { 'example.com/looked': new Date().toISOString() } };
    await cluster.client.patch(MODEL_SERVERS, { namespace: own, name: 'provider' }, { metadata }, { type: 'merge' });
    await waitFor(
      `the server to be ${reason}`,
      async () => {
        const { status } = await cluster.client.get(MODEL_SERVERS, { namespace: own, name: 'provider' });
        return status?.conditions?.find(({ type }) => type === 'Ready')?.reason === reason;
      },
      90_000,
    );
  }

  async function call(by = key, model = 'large'): Promise<{ status: number; text: string }> {
    const response = await fetch(`${api.url}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${by}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
    });
    return { status: response.status, text: await response.text() };
  }

  const answering = (status: number, by?: string): Promise<unknown> =>
    waitFor(`calls to end with ${status}`, async () => (await call(by)).status === status, 60_000);

  beforeAll(async () => {
    cluster = await openCluster();
    own = await cluster.namespace('berth');
    tenant = await cluster.namespace('tenant');
    // The chart makes them, and the controller may not.
    await ensurePriorityClasses(cluster.client, new AbortController().signal);
    outside = await startOutside({ models: ['large-2026'], apiKey: KEY });
    const annotations = { 'berth.dev/model-credential-for': `${own}/provider` };
    const data = { 'api-key': Buffer.from(OLD_KEY).toString('base64') };
    await cluster.client.create(SECRETS, { metadata: { namespace: own, name: SECRET, annotations }, data });
    api = await roleProcess('api', READS);
    controller = await roleProcess('controller', [...READS, ...WRITES]);
    key = await cluster.key(tenant, { scopes: ['models'] }, { url: api.url, replicas: [api.url, api.url] });
  }, 300_000);

  afterAll(async () => {
    for (const one of [controller, api, ...rights, cluster]) await one[Symbol.asyncDispose]();
    await outside.close();
    rmSync(folder, { recursive: true });
  });

  it('gets calls with the key of now, and its condition says what was wrong with that of before', async () => {
    await cluster.client.create(MODEL_SERVERS, providerIn(own));
    await looked('CredentialRefused');
    await answering(502);
    await put(KEY);
    await answering(200);
    await looked('Answering');
    const said = [api.log(), controller.log(), (await call()).text].join('\n');
    expect(said).not.toContain(KEY);
    expect(said).not.toContain(OLD_KEY);
  }, 240_000);

  it('is nothing to a tenant whom the operator did not choose', async () => {
    const other = await cluster.namespace('other');
    const theirs = await cluster.key(other, { scopes: ['models'] }, { url: api.url, replicas: [api.url, api.url] });
    expect((await call(theirs)).status).toBe(404);
    const list = await fetch(`${api.url}/api/v1/models`, { headers: { authorization: `Bearer ${theirs}` } });
    expect(await list.json()).toMatchObject({ data: [] });
  });

  it('is refused where a tenant names it, and nothing where one is there already', async () => {
    const theirs = providerIn(tenant);
    theirs.spec.models = [{ name: 'smuggled' }];
    await cluster.client.create(MODEL_SERVERS, theirs);
    await using _policy = await holdPolicies(cluster.client, ['berth-model-servers'], tenant);
    const object = { apiVersion: 'berth.dev/v1alpha1', kind: 'ModelServer', ...theirs, metadata: { name: 'another' } };
    const make = () => kubectlAs({ namespace: tenant, user: 'eve' }, ['create', '--dry-run=server', '-f', '-'], object);
    await waitFor('the policy to be in force', async () => (await make()) !== 'done');
    expect(await make()).toContain("named in Berth's own namespace");
    expect((await call(key, 'smuggled')).status).toBe(404);
    const kept = await cluster.client.get(MODEL_SERVERS, { namespace: tenant, name: 'provider' });
    expect(kept.status).toBeUndefined();
  });

  it('gets no calls when the role may not read its Secret any more', async () => {
    for (const one of rights) await one.lose('get', 'secrets');
    await answering(503);
    await looked('SecretForbidden');
  }, 180_000);
});
