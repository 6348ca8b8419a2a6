import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createKey } from '../../src/access/create-key.ts';
import { ensurePriorityClasses } from '../../src/controllers/priority-classes.ts';
import { NotFoundError } from '../../src/kube/errors.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { SSH_KEYS } from '../../src/resources/ssh-key.ts';
import { TENANT_LIMITS } from '../../src/resources/tenants/tenant-limit.ts';
import { newEd25519Key } from '../../src/ssh/login/ed25519-key.ts';
import { ALERTS_TEXT, faster, isOfNode, METRIC_TYPES } from '../support/alert-rules.ts';
import { type BerthProcess, startBerth } from '../support/berth-process.ts';
import { addNode, gpuNode } from '../support/http/fleet.ts';
import { kindsCounted } from '../support/kinds-counted.ts';
import { testWith } from '../support/needs.ts';
import { LONG_MS, OnCall } from '../support/on-call.ts';
import { fillLevel } from '../support/priority-levels.ts';
import { hasPrometheus, type Prometheus, startPrometheus } from '../support/prometheus.ts';
import { RoleAccount, writeKubeconfigOf } from '../support/role-account.ts';
import { runningInstance } from '../support/running-instance.ts';
import { ModelPod } from '../support/serve-model.ts';
import { sshTrue } from '../support/ssh-command.ts';
import { type TestNamespace, testNamespace } from '../support/test-cluster.ts';
import { waitFor } from '../support/wait-for.ts';

// As in runbooks.test.ts, for what goes wrong with the roles themselves, and between them and what they call. Each role
// has the rights that the chart gives it, and loses some of them. Minutes pass faster, thresholds in seconds do not.

const FACTOR = 60;
const PRODUCT = 'NVIDIA-RUNBOOK-ROLES';
const CAN_LEAD =
  'kubectl auth can-i update leases/berth-controller -n berth-system --as=system:serviceaccount:berth-system:berth-controller';
const { kubeconfig, programs, realNode } = inject('cluster');
const ROLES = ['controller', 'api', 'ssh'] as const;
type RoleName = (typeof ROLES)[number];

let home: TestNamespace;
let tenant: TestNamespace;
let folder: string;
let accounts: Record<RoleName, RoleAccount>;
let roles: Record<RoleName, BerthProcess>;
/** What roles said that did not start. */
const lastWords = new Map<string, string>();
let model: ModelPod;
let removeNode: () => Promise<void>;
let token: string;
const laptop = newEd25519Key('');
let prometheus: Prometheus;
let onCall: OnCall;

const targets = () => Object.fromEntries(ROLES.map((role) => [role, roles[role].metricsUrl]));

function start(role: RoleName, env: Record<string, string> = {}): Promise<BerthProcess> {
  return startBerth(join(folder, role), role, home.name, { env });
}

/** The process of a role is killed, and the next one does not start. */
async function failToStart(role: RoleName, env: Record<string, string> = {}): Promise<void> {
  roles[role].child.kill('SIGKILL');
  const said = await start(role, env).then(() => '', String);
  expect(said).toContain('ended by itself');
  lastWords.set(role, said);
}

async function startAgain(role: RoleName): Promise<void> {
  roles[role] = await start(role);
  lastWords.delete(role);
  await prometheus.scrape(targets());
}

beforeAll(async () => {
  [home, tenant] = await Promise.all([testNamespace(), testNamespace()]);
  const { client, name: namespace } = tenant;
  await kindsCounted(client);
  // The chart makes them: the controller may not.
  await ensurePriorityClasses(client, new AbortController().signal);
  folder = await mkdtemp(join(tmpdir(), 'berth-runbooks-'));
  const pairs = ROLES.map(async (role) => {
    const account = await RoleAccount.make(home, role);
    await writeKubeconfigOf(join(folder, role), kubeconfig, await account.token());
    return [role, account];
  });
  accounts = Object.fromEntries(await Promise.all(pairs)) as typeof accounts;
  removeNode = await addNode(client, gpuNode(`${namespace}-node`, PRODUCT, 8));
  model = await ModelPod.start(home, { models: ['tiny'] });
  ({ token } = await createKey(client, { namespace, scopes: ['models'] }));
  await client.create(SSH_KEYS, {
    apiVersion: 'berth.dev/v1alpha1',
    kind: 'SSHKey',
    metadata: { name: 'laptop', namespace },
    spec: { publicKey: laptop.public, displayName: 'laptop' },
  });
  const [controller, api, ssh] = await Promise.all([start('controller'), start('api'), start('ssh')]);
  roles = { controller, api, ssh };
  await rent('first');
  if (realNode !== undefined) await rent('entered', 'NVIDIA-L4');
}, LONG_MS);

afterAll(async () => {
  const { client, name: namespace } = tenant;
  const instances = async () => (await client.list(GPU_INSTANCES, { namespace })).items;
  for (const { metadata } of await instances()) await client.delete(GPU_INSTANCES, metadata);
  await waitFor('the instances to go', async () => (await instances()).length === 0, 60_000);
  await removeNode();
  const parts: AsyncDisposable[] = [...Object.values(roles), ...Object.values(accounts), model, tenant, home];
  for (const part of parts) await part[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
}, LONG_MS);

async function rent(name: string, product = PRODUCT): Promise<void> {
  const metadata = { name, namespace: tenant.name };
  await tenant.client.create(GPU_INSTANCES, { metadata, spec: { gpu: { product, count: 1 } } } as never);
}

const running = (name: string): Promise<GpuInstance> => runningInstance(tenant, name, LONG_MS);

async function askModel(): Promise<number> {
  const answer = await fetch(`${roles.api.url}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'Hello' }] }),
  });
  await answer.text();
  return answer.status;
}

/** What a session on this instance says; undefined when the login fails. */
function logIn(instance: GpuInstance): Promise<string | undefined> {
  const username = instance.status?.ssh?.user ?? '';
  return sshTrue({ port: roles.ssh.sshPort, username, privateKey: laptop.private });
}

it('every metric that the roles show is in the table, with its type, and no other', async () => {
  await using notifier = await startBerth(kubeconfig, 'notifier', tenant.name);
  const shown = new Map<string, string>();
  for (const { metricsUrl } of [...Object.values(roles), notifier]) {
    const text = await (await fetch(`${metricsUrl}/metrics`)).text();
    for (const [, name = '', type = ''] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) shown.set(name, type);
  }
  const own = [...shown].filter(([name]) => !isOfNode(name));
  expect(Object.fromEntries(own)).toEqual(Object.fromEntries(METRIC_TYPES));
});

describe.skipIf(!(await hasPrometheus()))('with a Prometheus beside the roles', { timeout: LONG_MS }, () => {
  const hastened = (text: string): string => faster(text, FACTOR);

  beforeAll(async () => {
    prometheus = await startPrometheus(targets(), hastened(ALERTS_TEXT));
    const logOf = (label: string): string => lastWords.get(label) ?? roles[label as RoleName].log();
    const env = { BERTH_URL: `${roles.api.url}/api/v1`, BERTH_API_KEY: token };
    onCall = new OnCall(prometheus, { kubeconfig, programs, namespace: home.name, logOf, faster: hastened, env });
  });
  afterAll(() => prometheus[Symbol.asyncDispose]());

  it('no alert fires while instances run and a model answers', async () => {
    // None led at first.
    onCall.expect('BerthNoLeader');
    await waitFor('all targets', async () => (await prometheus.query('sum(up) == 3')).length > 0);
    await running('first');
    if (realNode !== undefined) await running('entered');
    await waitFor('the model', async () => (await askModel()) === 200);
    await waitFor('the metrics of the fleet', async () => {
      const [rented] = await prometheus.query(`berth_gpus{product="${PRODUCT}",state="rented"}`);
      return rented?.value === 1;
    });
    await onCall.ends('BerthNoLeader');
    expect(await onCall.firing()).toEqual([]);
  });

  describe('while all roles run', () => {
    it.concurrent('BerthModelCallsFailing leads to BerthModelServersOut: a model server crashes', async () => {
      onCall.expect('BerthModelServersOut', 'BerthModelCallsFailing');
      await model.crash();
      await onCall.fires('BerthModelCallsFailing', askModel);
      await onCall.fires('BerthModelServersOut');
      const said = await onCall.shows('BerthModelCallsFailing', /"berth_outcome":"unavailable"/);
      expect(said).toMatch(/"state":"open"\},"value":\[[\d.]+,"1"\]/);
      const service = `"service":"${home.name}/engine"`;
      await onCall.shows('BerthModelServersOut', new RegExp(`${service}.*Model server does not answer probes`));
      const why = `${service}.*"why":"connection".*Model server gets one call at a time`;
      await onCall.shows('BerthModelServersOut', new RegExp(why));
      await model.recover();
      await waitFor('an answer', async () => (await askModel()) === 200);
      await onCall.ends('BerthModelServersOut', askModel);
      await onCall.ends('BerthModelCallsFailing', askModel);
    });

    testWith('real node').concurrent('BerthSSHSessionsFailing: a role was edited', async () => {
      const instance = await running('entered');
      expect(await logIn(instance)).toBe('');
      await accounts.ssh.lose('create', 'pods/exec');
      await onCall.fires('BerthSSHSessionsFailing', () => logIn(instance));
      // kubectl exec works there.
      const names = { TENANT: tenant.name, POD: instance.status?.podName ?? '' };
      await onCall.shows('BerthSSHSessionsFailing', /cannot \w+ resource \\"pods\/exec\\"/, names);
      await accounts.ssh.restore();
      await waitFor('a session', async () => (await logIn(instance)) === '');
      await onCall.ends('BerthSSHSessionsFailing');
    });

    it.concurrent('BerthNoLeader: a role was edited', async () => {
      await accounts.controller.lose('update', 'leases');
      await onCall.fires('BerthNoLeader');
      const said = await onCall.shows('BerthNoLeader', /leases\S* \S+ is forbidden/);
      expect(said).toContain('holderIdentity');
      expect(await onCall.run('BerthNoLeader', CAN_LEAD).catch(String)).toMatch(/: no$/m);
      await accounts.controller.restore();
      await waitFor('the right', async () => (await onCall.run('BerthNoLeader', CAN_LEAD).catch(String)) === 'yes\n');
      await onCall.ends('BerthNoLeader');
    });
  });

  describe('while some do not', () => {
    it.concurrent('BerthReconcileErrors: a role was edited', async () => {
      await using newcomer = await testNamespace();
      const { client, name: namespace } = newcomer;
      await accounts.controller.lose('create', 'tenantlimits');
      await createKey(client, { namespace });
      // Others may fail meanwhile.
      await onCall.fires('BerthReconcileErrors');
      await waitFor('the alert of this controller', async () => {
        const found = await prometheus.query('ALERTS{alertname="BerthReconcileErrors",alertstate="firing"}');
        return found.some(({ metric }) => metric['controller'] === 'tenant');
      });
      await onCall.shows('BerthReconcileErrors', new RegExp(`"key":"${namespace}".*tenantlimits.* is forbidden`));
      await accounts.controller.restore();
      await waitFor('the limits', () => client.get(TENANT_LIMITS, { namespace, name: 'berth' }).catch(unlessAbsent));
      await onCall.ends('BerthReconcileErrors');
    });

    it.concurrent('BerthAPIDown: a setting is wrong', async () => {
      onCall.expect('BerthAPIDown');
      await failToStart('api', { BERTH_LOG_LEVEL: 'loud' });
      await onCall.fires('BerthAPIDown');
      await onCall.shows('BerthAPIDown', /BERTH_LOG_LEVEL: Invalid option/);
      await startAgain('api');
      const ready = await onCall.run('BerthAPIDown', 'curl -s https://HOST/readyz', { 'https://HOST': roles.api.url });
      expect(ready).toBe('{"status":"ok"}');
      await onCall.ends('BerthAPIDown');
    });

    testWith('ssh').concurrent('BerthSSHDown: nobody may read the host key', async () => {
      onCall.expect('BerthSSHDown');
      await accounts.ssh.lose('get', 'secrets');
      await failToStart('ssh');
      await onCall.fires('BerthSSHDown');
      await onCall.shows('BerthSSHDown', /secrets .*berth-ssh-host-key.* is forbidden/);
      await accounts.ssh.restore();
      await startAgain('ssh');
      const where = { HOST: '127.0.0.1', PORT: String(roles.ssh.sshPort) };
      expect(await onCall.run('BerthSSHDown', 'ssh-keyscan -p PORT HOST', where)).toContain('ssh-ed25519');
      await onCall.ends('BerthSSHDown');
    });

    it.concurrent('BerthAPIServerErrors: another client fills the priority level', async () => {
      await using level = await fillLevel(home, accounts.controller.name);
      const names = ['second', 'third', 'fourth'];
      for (const name of names) await rent(name);
      await onCall.fires('BerthAPIServerErrors');
      const said = await onCall.shows('BerthAPIServerErrors', new RegExp(`priority_level="${level.name}"`));
      expect(said).toContain('"metric":{"code":"429"}');
      await level.giveOwnLevel();
      for (const name of names) await running(name);
      await onCall.ends('BerthAPIServerErrors');
    });
  });

  it('and all are over in the end', () => onCall.allEnd());
});

function unlessAbsent(error: unknown): undefined {
  if (!(error instanceof NotFoundError)) throw error;
}
