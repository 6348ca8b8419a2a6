import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { ForbiddenError } from '../../../src/kube/errors.ts';
import { SECRETS } from '../../../src/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import type { Cluster } from '../../support/http/api.ts';
import { openCluster } from '../../support/http/open.ts';
import { runLlamaPod } from '../../support/llama/pod.ts';
import { LLAMA_MODEL } from '../../support/llama/server.ts';
import { RoleAccount, writeKubeconfigOf } from '../../support/role-account.ts';
import { waitFor } from '../../support/wait-for.ts';

const ENGINE_KEY = 'sk-engine-0123456789';
const LISTED = 'llama-key';
const OTHER = 'other-key';
/** What the chart adds to the role for `models.engineSecrets`; its own tests compare this with what it renders. */
const RULE = { apiGroups: [''], resources: ['secrets'], resourceNames: [LISTED], verbs: ['get'] };
const { kubeconfig, realNode, initPid, programs } = inject('cluster');

describe.runIf(realNode !== undefined)('the key of an engine, with the rights of the api role alone', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-account-'));
  let cluster: Cluster;
  let own: string;
  let models: string;
  let api: BerthProcess;
  let account: KubeClient;
  let key: string;
  let rights: RoleAccount;

  function secret(namespace: string, name: string, value: string): Promise<unknown> {
    const annotations = { 'berth.dev/model-credential-for': `${models}/llama` };
    const data = { 'api-key': Buffer.from(value).toString('base64') };
    return cluster.client.create(SECRETS, { metadata: { namespace, name, annotations }, data });
  }

  beforeAll(async () => {
    if (initPid === undefined || programs === undefined) throw new Error('a real node has both');
    cluster = await openCluster();
    [own, models] = [await cluster.namespace('berth'), await cluster.namespace('models')];
    await secret(own, LISTED, ENGINE_KEY);
    await secret(own, OTHER, 'sk-of-another');
    await secret(models, LISTED, 'sk-of-the-tenant');
    rights = await RoleAccount.make({ client: cluster.client, name: own }, 'api', [RULE]);
    await runLlamaPod(cluster.client, {
      node: { initPid, programs },
      nodeName: realNode ?? '',
      namespace: models,
      services: { llama: { 'berth.dev/model-credential': LISTED } },
      parameters: { api_keys: [ENGINE_KEY] },
    });
    const config = await writeKubeconfigOf(join(folder, 'kubeconfig'), kubeconfig, await rights.token());
    account = createKubeClient(await loadKubeConfig({ kubeconfig: config }), { clock: systemClock() });
    api = await startBerth(config, 'api', own, { env: { BERTH_ENGINE_SECRETS: LISTED } });
    key = await cluster.key(models, { scopes: ['models'] }, { url: api.url, replicas: [api.url, api.url] });
  }, 600_000);

  afterAll(async () => {
    await api[Symbol.asyncDispose]();
    await account.close();
    await rights[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  async function call(): Promise<{ status: number; text: string }> {
    const response = await fetch(`${api.url}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: LLAMA_MODEL, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 8 }),
    });
    return { status: response.status, text: await response.text() };
  }

  it('is read by the account of the role, and goes to the engine', async () => {
    await waitFor('the engine to answer', async () => (await call()).status === 200, 60_000);
    expect(api.log()).not.toContain(ENGINE_KEY);
  });

  it.each([
    ['reads the Secret that the operator listed', () => account.get(SECRETS, { namespace: own, name: LISTED }), true],
    ['reads another Secret beside it', () => account.get(SECRETS, { namespace: own, name: OTHER }), false],
    ['reads a Secret of that name elsewhere', () => account.get(SECRETS, { namespace: models, name: LISTED }), false],
    ["lists the Secrets of Berth's namespace", () => account.list(SECRETS, { namespace: own }), false],
    ['lists the Secrets of the cluster', () => account.list(SECRETS), false],
    ['deletes it', () => account.delete(SECRETS, { namespace: own, name: LISTED }), false],
    [
      'changes for whom it is',
      () =>
        account.patch(SECRETS, { namespace: own, name: LISTED }, { metadata: { annotations: {} } }, { type: 'merge' }),
      false,
    ],
  ])('the account %s: %s', async (_what, attempt, isAllowed) => {
    const outcome = await Promise.resolve(attempt()).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (isAllowed) expect(outcome).toBeUndefined();
    else expect(outcome).toBeInstanceOf(ForbiddenError);
  });

  it('is used no more when the operator takes the right away', async () => {
    await rights.lose('get', 'secrets');
    const refused = await waitFor(
      'the engine to get no calls',
      async () => {
        const answer = await call();
        return answer.status === 200 ? undefined : answer;
      },
      60_000,
    );
    expect(refused.status).toBe(503);
    expect(refused.text).not.toContain(ENGINE_KEY);
    await waitFor('the log', () => api.log().includes(`Berth may not read the Secret ${LISTED}`));
  });
});
