import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { KubeObject } from '../../src/kube/types.ts';
import { GPU_POOLS } from '../../src/resources/gpu-pool.ts';
import { INSTANCE_TEMPLATES } from '../../src/resources/instance-template.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { SSH_KEYS } from '../../src/resources/ssh-key.ts';
import { USAGE_RECORDS, type UsageRecord } from '../../src/resources/usage-record.ts';
import { ROOT } from '../../tools/lib/paths.ts';
import { blockWith, lastBlock, readManual } from '../support/manual.ts';
import { hasPostgres, startPostgres } from '../support/postgres.ts';
import { openRegistry } from '../support/registry/serve.ts';
import { waitFor } from '../support/wait-for.ts';
import { INSTANCE_IMAGE, NON_ROOT_IMAGE } from './support/images.ts';
import { paste } from './support/paste.ts';
import { NAMESPACE, OTHER, TENANT, VALUES } from './support/release.ts';
import { newIdentity } from './support/ssh.ts';
import { World } from './support/world.ts';

// The commands of docs/run/install.md, docs/run/operations.md and docs/run/money.md in their order, as an operator pastes them.

const MINUTES = 60_000;
const ROLL_OUT = `kubectl -n ${NAMESPACE} rollout status deployment --timeout=5m`;
const options = inject('e2e');
const hasDatabase = await hasPostgres();

describe('the commands of the manual', () => {
  let world: World;
  let folder: string;
  let install: string;
  let operations: string;

  /** Pastes commands after words of them have been replaced; kubectl works in the tenant's namespace by default. */
  function follow(commands: string, words: Readonly<Record<string, string>> = {}): Promise<string> {
    const prelude = [
      'cp "$KUBECONFIG" kubeconfig',
      'export KUBECONFIG=$PWD/kubeconfig',
      `kubectl config set-context --current --namespace=${TENANT} >/dev/null`,
      '',
    ].join('\n');
    const replaced = Object.entries(words).reduce((text, [word, by]) => text.replaceAll(word, by), commands);
    return paste(`${prelude}${replaced}`, { ...options, identity: newIdentity() });
  }

  const chart = (): Record<string, string> => ({
    'oci://ghcr.io/berth-dev/charts/berth': `${options.chart} --values ${join(folder, 'values.json')}`,
  });

  async function reached(name: string, reason: string): Promise<GpuInstance> {
    return waitFor(
      `${name} is ${reason}`,
      async () => {
        const found = await world.client.get(GPU_INSTANCES, { namespace: TENANT, name });
        const ready = found.status?.conditions?.find(({ type }) => type === 'Ready');
        return ready?.reason === reason ? found : undefined;
      },
      4 * MINUTES,
    );
  }

  async function records(): Promise<UsageRecord[]> {
    return (await world.client.list(USAGE_RECORDS, { namespace: TENANT })).items;
  }

  async function make(name: string, spec: object): Promise<void> {
    await world.client.create(GPU_INSTANCES, {
      metadata: { namespace: TENANT, name },
      spec: { gpu: { count: 1 }, image: NON_ROOT_IMAGE, runtype: 'args', diskGb: 1, ...spec },
    } as GpuInstance);
  }

  beforeAll(async () => {
    world = await World.open(options);
    await world.release.helm(['uninstall', 'berth', '--ignore-not-found', '--wait']);
    folder = await mkdtemp(join(tmpdir(), 'berth-e2e-manual-'));
    await writeFile(join(folder, 'values.json'), JSON.stringify(VALUES));
    install = await readManual('run/install.md');
    operations = (await readManual('run/operations.md')) + (await readManual('run/money.md'));
  });
  afterAll(async () => {
    await world.client.close();
    await rm(folder, { recursive: true });
  });

  it('install Berth and upgrade it, and its manifests are accepted', async () => {
    await follow(blockWith(install, 'helm install berth oci'), chart());
    expect(await follow(ROLL_OUT)).toContain('deployment "berth-ssh" successfully rolled out');
    await waitFor('the first pool', async () => (await follow('kubectl get gpupools -o name')).includes('/default'));
    // The namespace itself is made, because what is in it needs it.
    const trial = `kubectl() { command kubectl "$@" $([[ $* == *deploy/tenant* ]] || echo --dry-run=server); }\n`;
    const version = JSON.parse(await follow('kubectl version -o json')) as { serverVersion: { minor: string } };
    const isOld = Number.parseInt(version.serverVersion.minor) < 36;
    const manifests = blockWith(install, '-k deploy/base')
      .replace('--server-side', '--server-side --force-conflicts')
      .replace(/^.*on Kubernetes 1.36 or newer.*\n/m, isOld ? '' : '$&');
    const printed = await follow(trial + manifests, { 'deploy/': `${join(ROOT, 'deploy')}/` });
    expect(printed).toContain('gpupool.berth.dev/default');
    await follow(blockWith(install, 'helm upgrade berth oci'), chart());
    expect(await follow(ROLL_OUT)).toContain('deployment "berth-ssh" successfully rolled out');
  });

  it('switch traces on', async () => {
    await follow(blockWith(operations, 'collector-key'), { 'Bearer KEY': 'Bearer of-the-collector' });
    const upgrade = blockWith(operations, 'tracing.endpoint').trim();
    await follow(`${upgrade} --set tracing.headersSecret=collector-key`, chart());
    expect(await follow(ROLL_OUT)).toContain('deployment "berth-controller" successfully rolled out');
    // The replicas of before may still be stopping, and kubectl takes any.
    const log = `kubectl -n ${NAMESPACE} logs deployment/berth-controller`;
    await waitFor('a controller with traces', async () => (await follow(log)).includes('Traces are sent'));
  });

  it('put the chart into a registry, and install it from there', async () => {
    await using registry = await openRegistry();
    await follow(blockWith(install, 'helm push'), {
      'berth-0.1.0.tgz': `--plain-http ${options.chart}`,
      'helm upgrade': 'helm upgrade --plain-http',
      'registry.example.com': registry.server,
    });
    const status: unknown = JSON.parse(await world.release.helm(['status', 'berth', '--output', 'json']));
    expect(status).toMatchObject({ version: 4, info: { status: 'deployed' } });
  });

  it('make the Secrets of an OpenID provider and of a Valkey', async () => {
    await follow(blockWith(install, 'berth-oidc'), { '=SECRET': '=of-the-provider' });
    const valkey = blockWith(install, 'valkey-of-berth');
    await follow(`${valkey}openssl verify -CAfile tls.crt -verify_hostname "$HOST" tls.crt\n`);
    const keys = `kubectl -n ${NAMESPACE} get secret berth-oidc valkey-of-berth -o go-template='{{range .items}}{{range $key, $_ := .data}}{{$key}} {{end}}{{end}}'`;
    expect(await follow(keys)).toBe('client-secret ca.crt password tls.crt tls.key url ');
  });

  it('show what an upgrade needs to know', async () => {
    expect(await follow(blockWith(install, 'ExternalIP'))).toBe('\n');
    expect(await follow(blockWith(install, 'CUDA_MPS_'))).toBe('none\n');
    await world.client.create(INSTANCE_TEMPLATES, {
      metadata: { namespace: OTHER, name: 'for-all', labels: { 'berth.dev/shared': 'true' } },
      spec: { displayName: 'for all', image: INSTANCE_IMAGE },
    });
    const shared = async (): Promise<string | undefined> => {
      const { status } = await world.client.get(INSTANCE_TEMPLATES, { namespace: OTHER, name: 'for-all' });
      return status?.conditions?.find(({ type }) => type === 'Ready')?.reason;
    };
    await waitFor('the template is not shared', async () => (await shared()) === 'NotShared');
    const words = { NAME: OTHER };
    expect(await follow(blockWith(install, 'get instancetemplates'), words)).toContain('for-all');
    await waitFor('the template is shared', async () => (await shared()) !== 'NotShared');
    await follow(blockWith(operations, 'berth.dev/shared-templates=true'), words);
    await make('first', { command: ['true'] });
    expect(await follow(blockWith(install, 'gpuinstances,apikeys'), { NAME: TENANT })).toMatch(
      new RegExp(`^${TENANT}\nnamespace/${TENANT} `),
    );
  });

  it('start what has ended', async () => {
    await reached('first', 'Completed');
    await follow(blockWith(operations, 'startRequest\\"'), { NAME: 'first' });
    await waitFor('another start', async () => {
      const { spec, status } = await world.client.get(GPU_INSTANCES, { namespace: TENANT, name: 'first' });
      return spec.startRequest !== undefined && status?.ending?.startRequest === spec.startRequest;
    });
    await world.client.delete(GPU_INSTANCES, { namespace: TENANT, name: 'first' });
    await waitFor('the bill', async () => (await records()).some(({ spec }) => spec.instance === 'first'));
  });

  it('find an instance by its node', async () => {
    const { publicKey } = newIdentity();
    await world.client.create(SSH_KEYS, {
      metadata: { namespace: TENANT, name: 'mine' },
      spec: { publicKey, displayName: '' },
    });
    const key = await waitFor('the number of the key', async () => {
      return (await world.client.get(SSH_KEYS, { namespace: TENANT, name: 'mine' })).status?.id;
    });
    const command = ['sh', '-c', 'trap "exit 0" TERM; sleep 3600 & wait'];
    await make('second', { command, diskPolicy: 'Retain', sshKeyIds: [key] });
    const { status } = await reached('second', 'Running');
    const node = status?.claim?.node ?? '';
    expect(await follow(blockWith(operations, '--field-selector status.claim'), { NODE: node })).toContain('second');
  });

  it('bring back objects that were saved, with their bills, and give an instance its disk', async () => {
    const bills = (await records()).map(({ spec }) => spec);
    expect(bills.map(({ instance }) => instance)).toEqual(['first']);
    const saved = JSON.parse(await follow('kubectl get usagerecords,gpuinstances,sshkeys -o json')) as {
      items: KubeObject[];
    };
    await follow('kubectl delete gpuinstance second; kubectl delete sshkeys,usagerecords --all');
    // With its marks the disk would be the restored instance's at once.
    await follow('kubectl label pvc second-disk berth.dev/retained-from- berth.dev/instance-');
    const user = (await follow("kubectl auth whoami -o jsonpath='{.status.userInfo.username}'")).trim();
    await world.release.upgrade({ admissionPolicies: { statusWriters: [user] } });
    // As a tool for backups restores them: without what the API server gives.
    const items = saved.items.map(({ status: _status, ...object }: KubeObject & { status?: unknown }) => {
      const { uid: _uid, resourceVersion: _version, creationTimestamp: _created, ...metadata } = object.metadata;
      return { ...object, metadata };
    });
    const { code, stderr } = await world.kubectl(['create', '-f', '-'], JSON.stringify({ ...saved, items }));
    expect(code, stderr).toBe(0);
    expect((await records()).map(({ spec }) => spec)).toEqual(bills);
    const lost = await reached('second', 'NameConflict');
    expect(lost.status?.conditions?.find(({ type }) => type === 'SSHKeys')?.reason).toBe('KeyNotFound');
    await follow(blockWith(operations, 'kubectl label pvc'), { NAME: 'second' });
    await reached('second', 'Running');
  });

  it.runIf(hasDatabase)('copy the bills to a PostgreSQL', async () => {
    // The correction of the manual, dated today.
    const [, credit = ''] = /^```yaml\n([^`]*kind: UsageRecord\n[^`]*)^```/m.exec(operations) ?? [];
    const today = new Date().toISOString().slice(0, 10);
    const correction = credit
      .replaceAll('2026-11-23', today)
      .replace('"2026-11"', `"${today.slice(0, 7)}"`)
      .replace('team-a', TENANT);
    const { code, stderr } = await world.kubectl(['create', '-f', '-'], correction);
    expect(code, stderr).toBe(0);
    await using postgres = await startPostgres({ host: options.hostAddress });
    const url = await postgres.database('bills');
    const sound = 'The sink has every charge that was read.';
    const first = await follow(`echo '${url}' >bills-url.txt\n${blockWith(operations, 'bills-url.txt')}`, {
      ...chart(),
      "{10.20.0.0/16}'": `{${options.hostAddress}/32}' --set 'usageSink.ports={${postgres.port}}'`,
    });
    expect(first).toContain(sound);
    const question = 'SELECT "BillingAccountId" AS tenant, "BilledCost"::text AS cost FROM berth_usage';
    expect(await postgres.query(url, question)).toContainEqual({ tenant: TENANT, cost: '-12.50' });
    const all = await follow(blockWith(operations, '/containers/0/args/-'));
    expect(all).toContain('token records: all.');
    expect(all.trim().endsWith(sound)).toBe(true);
    expect(first + all).not.toContain(postgres.password);
    // There is none of that month.
    await follow(lastBlock(operations, 'Bills'));
    expect(await records()).toHaveLength(2);
  });

  it('hand over the bills of a month', async () => {
    const [record] = await records();
    const month = record?.spec.endedAt.slice(0, 7) ?? '';
    const commands = `${blockWith(operations, 'berth.dev/ended=')}cat usage-${month}.json\n`;
    expect(await follow(commands, { '2025-10': month })).toContain('"instance": "first"');
    expect(await records()).toEqual([]);
  });

  it('bring an image to the nodes', async () => {
    await world.client.patch(GPU_POOLS, { name: 'default' }, { spec: { images: [INSTANCE_IMAGE] } }, { type: 'merge' });
    await waitFor('the image', async () => {
      return (await follow(blockWith(operations, '.status.images'), { NAME: 'default' })).startsWith(
        `${INSTANCE_IMAGE}\t1/1\t`,
      );
    });
  });

  it('look for what is wrong', async () => {
    const printed = await follow(blockWith(operations, 'berth doctor --probe'), { NAMESPACE });
    expect(printed.match(/^\d+ checks: .*$/gm)).toHaveLength(3);
    expect(printed).toContain('"findings"');
  });

  it('remove all of it', async () => {
    await follow(lastBlock(install, 'Remove'));
  });
});
