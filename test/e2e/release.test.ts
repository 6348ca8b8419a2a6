import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { KubeClient } from '../../src/kube/client/client.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  type KubeObject,
  NAMESPACES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
} from '../../src/kube/types.ts';
import { freePorts } from '../../tools/lib/free-ports.ts';
import { ROOT } from '../../tools/lib/paths.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { CUSTOM_RESOURCES } from '../../src/resources/index.ts';
import { INSTANCE_TEMPLATES } from '../../src/resources/instance-template.ts';
import { previousChart } from '../../tools/release/kept-charts.ts';
import { blockWith, lastBlock, readManual } from '../support/manual.ts';
import { waitFor } from '../support/wait-for.ts';
import { KEPT, LENIENT, MANAGER } from './support/attack.ts';
import { attacks, attempt, harmless, tryAll } from './support/attacks.ts';
import { tryBudget } from './support/budget.ts';
import { tryCeilings } from './support/ceilings.ts';
import { tryFormerTenant } from './support/former-tenant.ts';
import { tenant, type Tenant } from './support/http.ts';
import { INSTANCE_IMAGE, NON_ROOT_IMAGE } from './support/images.ts';
import { privateKey } from './support/leaks.ts';
import { callAtPrice, deployModel } from './support/model.ts';
import { reachOf } from './support/network.ts';
import { openRelease, tryKeys, tryPage } from './support/page.ts';
import { may } from './support/people.ts';
import { commandsOf, paste, withSignIn } from './support/paste.ts';
import { NAMESPACE, OTHER, type Release, ROLES, TENANT } from './support/release.ts';
import { noInstancesIn, Rented } from './support/rented.ts';
import { reportUse } from './support/review.ts';
import { ownSecrets, scan, type Scan } from './support/scan.ts';
import { askPort, login, newIdentity, runOver } from './support/ssh.ts';
import { tryTemplates } from './support/templates.ts';
import { World } from './support/world.ts';

/** Kinds of the whole cluster that the chart has objects of. */
const KINDS_OF_CHART =
  'clusterroles,clusterrolebindings,priorityclasses,validatingadmissionpolicies,validatingadmissionpolicybindings';

const MINUTES = 60_000;
const identity = newIdentity();
const { initPid, namespaces } = inject('e2e');

describe('a release on a real node', () => {
  let world: World;
  let client: KubeClient;
  let release: Release;
  let user: Tenant;
  let rented: Rented;
  let dashboardToken: string;
  /** Bytes of the audit log that others have written. */
  let begun: number;

  async function rent(wanted: object): Promise<Rented> {
    const { status, body } = await user.call('POST', '/api/v1/instances', wanted);
    expect(status, JSON.stringify(body)).toBe(201);
    const instance = new Rented(world, user, String(body['id']));
    await instance.running();
    return instance;
  }

  /** Whether an instance is Ready. */
  async function isReady(namespace: string, name: string): Promise<boolean> {
    const { status } = await client.get(GPU_INSTANCES, { namespace, name });
    return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
  }

  /** Scans the cluster for every secret of the test's users and of Berth itself. */
  async function lookForSecrets(): Promise<Scan> {
    const people = [
      { name: 'the API key', piece: user.token },
      { name: "the dashboard's API key", piece: dashboardToken },
      privateKey("the user's key", identity.privateKey),
    ];
    return scan(client, { secrets: [...people, ...(await ownSecrets(client))], auditLog: inject('e2e').auditLog });
  }

  beforeAll(async () => {
    world = await World.open(inject('e2e'));
    ({ client, release } = world);
    begun = (await stat(inject('e2e').auditLog)).size;
    await release.upgrade({}, previousChart());
  });
  afterAll(async () => {
    await client.close();
  });

  it('runs every role with its own account', async () => {
    for (const role of ROLES) {
      // Those of the release before may still be ending.
      const pods = await waitFor(`the two pods of ${role}`, async () => {
        const found = await world.pods(NAMESPACE, `app.kubernetes.io/component=${role}`);
        return found.length === 2 && found;
      });
      expect(pods.map(({ spec }) => spec?.serviceAccountName)).toEqual([`berth-${role}`, `berth-${role}`]);
    }
  });

  it('passes its own test', async () => {
    expect(await release.helm(['test', 'berth', '--timeout', '3m'])).toContain('Succeeded');
  });

  it('prints notes whose commands work when they are pasted', async () => {
    const [port = 0] = await freePorts(1);
    const commands = withSignIn(commandsOf(await release.helm(['get', 'notes', 'berth'])), port);
    const printed = await paste(commands, { ...inject('e2e'), identity: newIdentity() });
    expect(printed).toContain('gpuinstance.berth.dev/first condition met');
    expect(printed).toContain('NVIDIA-L4');
    expect(printed).toMatch(/"username":"system:serviceaccount:[^:"]+:first"/);
    expect(printed).toContain('gpuinstance.berth.dev "first" deleted');
  });

  it('comes as plain manifests too, with samples that the cluster accepts', async () => {
    const apply = ['apply', '--server-side', '--field-manager=e2e'];
    const trial = [...apply, '--dry-run=server', '--force-conflicts'];
    const folder = (name: string): string => join(ROOT, 'deploy', name);
    for (const args of [
      [...trial, '-k', folder('base')],
      [...apply, '-k', folder('tenant')],
      [...trial, '-n', TENANT, '-f', folder('samples')],
    ]) {
      const { code, stderr } = await world.kubectl(args);
      expect(code, stderr).toBe(0);
    }
  });

  it('gives people their rights in one namespace by the commands of the manual', async () => {
    const manual = await readManual('run/install.md');
    const rent = { verb: 'create', resource: 'gpuinstances', namespace: TENANT };
    // The cluster's own role gives none of them.
    await world.kubectl(['create', 'rolebinding', 'bob-edit', '--clusterrole=edit', '--user=alice', '-n', OTHER]);
    expect(await may(world, 'alice', rent)).toBe(false);
    await paste(blockWith(manual, 'create rolebinding'), { ...inject('e2e'), identity });
    await waitFor('the roles hold', () => may(world, 'alice', rent));
    expect(await may(world, 'alice', { ...rent, resource: 'apikeys' })).toBe(true);
    expect(await may(world, 'alice', { ...rent, resource: 'pods' })).toBe(false);
    expect(await may(world, 'alice', { ...rent, namespace: OTHER })).toBe(false);
  });

  it('offers the GPUs of the node over the Service', async () => {
    const { host, port } = await world.service('berth-api');
    user = await tenant(client, TENANT, `http://${host}:${port}`);
    const offers = await waitFor('the key works', async () => {
      const { status, body } = await user.call('GET', '/api/v1/offers');
      return status === 200 ? (body['data'] as { gpu_name: string; available: number }[]) : undefined;
    });
    expect(offers[0]).toMatchObject({ gpu_name: 'NVIDIA-L4', simulated: false });
  });

  it('rents an instance and lets its key in over the ssh Service', async () => {
    const key = { name: 'e2e', public_key: identity.publicKey };
    expect((await user.call('POST', '/api/v1/ssh-keys', key)).status).toBe(201);
    rented = await rent({ name: 'e2e', disk_gb: 1 });
    const session = await login(await rented.place(), identity);
    expect(await runOver(session, 'echo $((6 * 7)) && touch /workspace/kept')).toBe('42\n');
    await runOver(session, 'mkdir -p /tmp/www && echo forwarded > /tmp/www/x && httpd -p 127.0.0.1:8099 -h /tmp/www');
    expect(await askPort(session, 8099, 'GET /x HTTP/1.0\r\n\r\n')).toContain('forwarded');
    session.end();
    await rented.tryRecords();
  });

  it('rents with a template, variables and a start script, with a key alone', () =>
    tryTemplates({ user, rent, identity }));

  it('calls a model in the cluster, which is at zero replicas, and bills another tenant for it', async () => {
    await deployModel(client, TENANT);
    const question = { model: 'tiny-random', messages: [{ role: 'user', content: 'Say hello' }], max_tokens: 8 };
    const answer = await waitFor(
      'the model answers',
      async () => {
        const { status, body } = await user.call('POST', '/api/v1/chat/completions', question);
        return status === 200 ? body : undefined;
      },
      4 * MINUTES,
    );
    expect(answer).toMatchObject({ object: 'chat.completion', model: 'tiny-random' });
    const { host, port } = await world.service('berth-api');
    const other = await tenant(client, OTHER, `http://${host}:${port}`);
    const bill = await callAtPrice(client, { namespace: TENANT, caller: OTHER, tenant: other });
    expect(bill).toMatchObject({ currency: 'EUR', entries: [{ by: 'key/e2e', model: 'tiny-random', unreported: 0 }] });
  });

  it('keeps tenants apart from each other and from the cluster', async () => {
    const spec = { image: INSTANCE_IMAGE, gpu: { count: 1 }, diskGb: 1 };
    const bob = { metadata: { namespace: OTHER, name: 'bob' }, spec } as KubeObject;
    await client.apply(GPU_INSTANCES, bob, { fieldManager: 'e2e' });
    await waitFor("the other tenant's instance runs", () => isReady(OTHER, 'bob'), 2 * MINUTES);
    const mine = await world.pod(TENANT, `berth.dev/instance=${rented.id}`);
    const theirs = await world.pod(OTHER, 'berth.dev/instance=bob');
    // The gateway reaches the model: the previous test called it.
    const closed = { byNode: false, metrics: false, cluster: false, api: true, dashboard: false };
    // To a plugin, a node port is the pod that it leads to, or the node: a tenant reaches itself by it, or not.
    expect(await reachOf(world, mine)).toEqual({ ...closed, model: true, byNode: expect.any(Boolean) });
    expect(await reachOf(world, theirs)).toEqual({ ...closed, model: false });
    for (const method of ['GET', 'DELETE']) {
      expect((await user.call(method, '/api/v1/instances/bob')).status).toBe(404);
    }
    // Without a policy its pods reach the network, and still not the other tenant's namespace.
    const policies = `/apis/networking.k8s.io/v1/namespaces/${OTHER}/networkpolicies`;
    await client.raw('DELETE', `${policies}/berth-instances`);
    const opened = await waitFor('the network is open', async () => {
      const reach = await reachOf(world, theirs);
      return reach.cluster && reach;
    });
    expect(opened).toEqual({ model: false, byNode: false, metrics: false, cluster: true, api: true, dashboard: false });
    await client.delete(GPU_INSTANCES, bob.metadata);
    await waitFor('it is gone', () => noInstancesIn(client, OTHER), 2 * MINUTES);
  });

  it('keeps a running instance through an upgrade from the version before, and a rollback', async () => {
    const before = await rented.identity();
    const old = new Set((await world.pods(NAMESPACE, 'berth.dev/metrics=true')).map(({ metadata }) => metadata.uid));
    await release.upgrade({
      config: { logLevel: 'debug', defaultImage: NON_ROOT_IMAGE, imagePullPolicy: 'IfNotPresent' },
    });
    await waitFor(
      'every replica is a new one',
      async () => {
        const pods = await world.pods(NAMESPACE, 'berth.dev/metrics=true');
        return !pods.some(({ metadata }) => old.has(metadata.uid));
      },
      2 * MINUTES,
    );
    await rented.running();
    expect(await rented.identity()).toEqual(before);
    await release.helm(['rollback', 'berth', '1', '--wait', '--timeout', '10m']);
    await rented.running();
    expect(await rented.identity()).toEqual(before);
    const session = await login(await rented.place(), identity);
    expect(await runOver(session, 'ls /workspace')).toContain('kept');
    session.end();
    await release.upgrade();
  });

  it('restores a label that somebody removes from a pod', async () => {
    const [pod] = await world.pods(TENANT, `berth.dev/instance=${rented.id}`);
    const ref = { namespace: TENANT, name: pod?.metadata.name ?? '' };
    await client.patch(PODS, ref, { metadata: { labels: { 'berth.dev/instance': null } } }, { type: 'merge' });
    await waitFor(
      'the label is back',
      async () => (await world.pods(TENANT, `berth.dev/instance=${rented.id}`)).length === 1,
    );
  });

  it('gives the GPUs back when the instance is deleted', async () => {
    expect((await user.call('DELETE', `/api/v1/instances/${rented.id}`)).status).toBe(200);
    await waitFor(
      'the instance is gone',
      async () => {
        return (await user.call('GET', `/api/v1/instances/${rented.id}`)).status === 404;
      },
      2 * MINUTES,
    );
    expect(await world.pods(TENANT, `berth.dev/instance=${rented.id}`)).toEqual([]);
  });

  it('runs a non-root image where Pod Security restricted is enforced', async () => {
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await client.patch(NAMESPACES, { name: TENANT }, { metadata: { labels } }, { type: 'merge' });
    rented = await rent({ template_image: NON_ROOT_IMAGE, disk_gb: 1 });
    const session = await login(await rented.place(), identity);
    expect(await runOver(session, 'id -u')).not.toBe('0\n');
    session.end();
  });

  it('forwards ports of an image without tools, keeps a disk on request and ends what has expired', async () => {
    await client.create(INSTANCE_TEMPLATES, {
      metadata: { namespace: TENANT, name: 'server' },
      spec: { displayName: 'server', image: INSTANCE_IMAGE, runtype: 'args', command: ['httpd', '-f', '-p', '8080'] },
    });
    const ports = [{ containerPort: 8080, protocol: 'TCP' as const }];
    // The first process of a container gets only the signals that it asks for.
    const serve = 'echo serves; trap "exit 0" TERM; httpd -f -p 8080 & wait';
    const wanted = { runtype: 'args', image: NON_ROOT_IMAGE, ports, command: ['sh', '-c', serve] };
    const server = {
      metadata: { namespace: TENANT, name: 'server' },
      spec: {
        ...wanted,
        gpu: { count: 1 },
        diskGb: 1,
        diskPolicy: 'Retain',
        maxDuration: '20s',
        idleTimeout: '1h',
        onExpiry: 'Delete',
      },
    };
    await client.apply(GPU_INSTANCES, server, { fieldManager: 'e2e' });
    const found = await waitFor(
      'the server runs',
      async () => (await isReady(TENANT, 'server')) && client.get(GPU_INSTANCES, { namespace: TENANT, name: 'server' }),
      2 * MINUTES,
    );
    const { user: name = '', knownHosts: hostKey = '' } = found.status?.ssh ?? {};
    const session = await login({ ...(await world.service('berth-ssh')), user: name, hostKey }, identity);
    expect(await askPort(session, 8080, 'GET /x HTTP/1.0\r\n\r\n')).toContain('404 Not Found');
    session.end();
    const { host, port } = await world.service('berth-api');
    const page = await fetch(`http://${host}:${port}/api/v1/instances/server/proxy/8080/x`, {
      headers: { authorization: `Bearer ${user.token}` },
    });
    expect(await page.text()).toContain('404 Not Found');
    const link = await user.call('POST', '/api/v1/instances/server/links', { port: 8080 });
    expect(link.status, JSON.stringify(link.body)).toBe(201);
    await waitFor(
      'the server has expired',
      async () =>
        (await client.list(GPU_INSTANCES, { namespace: TENANT })).items.every(
          ({ metadata }) => metadata.name !== 'server',
        ),
      // It is deleted a minute after it was stopped, once every replica has reported.
      4 * MINUTES,
    );
    const { items } = await client.list(PERSISTENT_VOLUME_CLAIMS, { namespace: TENANT });
    expect(items.map(({ metadata }) => metadata.name)).toContain('server-disk');
    const { body: log } = await user.call('GET', '/api/v1/instances/server/logs');
    expect(log).toMatchObject({ kept: true, data: [{ text: 'serves' }] });
  });

  it('refuses an SSH key after its deletion', async () => {
    const { body } = await user.call('GET', '/api/v1/ssh-keys');
    const [key] = body['data'] as { id: number }[];
    expect((await user.call('DELETE', `/api/v1/ssh-keys/${key?.id}`)).status).toBe(200);
    await expect(login(await rented.place(), identity)).rejects.toThrow(/authentication/i);
  });

  it('shows the dashboard: an admin of the namespace makes and revokes keys there, an operator sets prices', async () => {
    await openRelease(world);
    dashboardToken = await tryKeys(world);
  });

  it('rents in the page through the Ingress, while replicas die', () => tryPage(world, initPid));

  it('holds a tenant to the ceilings of the operator', () => tryCeilings(world, identity.publicKey));

  it('stops a tenant whose budget is spent, beside a neighbour who notices nothing', () => tryBudget(world, rented));

  it('refuses attacks by tenants and by roles', async () => {
    await client.create(NAMESPACES, { metadata: { name: LENIENT, labels: { 'berth.dev/tenant': 'true' } } });
    const account = ['get', 'serviceaccount', 'default', '-n', LENIENT];
    await waitFor('pods may be made there', async () => (await world.kubectl(account)).code === 0);
    expect((await world.kubectl(['create', 'serviceaccount', 'another', '-n', LENIENT])).code).toBe(0);
    const noted = { metadata: { namespace: TENANT, name: rented.id, annotations: KEPT } } as unknown as GpuInstance;
    const { metadata } = await client.apply(GPU_INSTANCES, noted, { fieldManager: MANAGER });
    const targets = {
      instance: { name: rented.id, uid: metadata.uid ?? '' },
      pod: (await world.pod(TENANT, `berth.dev/instance=${rented.id}`)).metadata.name,
      otherPod: (await world.pod(TENANT, 'app=model')).metadata.name,
      ownPod: (await world.pod(NAMESPACE, 'app.kubernetes.io/component=api')).metadata.name,
      admin: `system:serviceaccount:${TENANT}:e2e-admin`,
    };
    expect((await attempt(world, harmless(targets))).stderr).toBe('');
    expect(await tryAll(world, attacks(targets))).toEqual([]);
  });

  it('tells a caller what to do when the namespace is no tenant any more', async () => {
    await tryFormerTenant(world, { namespace: LENIENT, publicKey: identity.publicKey });
  });

  it('uses every right that the chart grants and lacks none', async () => {
    const log = (await readFile(inject('e2e').auditLog)).subarray(begun).toString();
    const report = await reportUse(release, log);
    expect(report).toEqual({ refused: [], unused: [] });
  });

  it('leaves no token or private key in objects, logs or metrics', async () => {
    const maps = `/api/v1/namespaces/${TENANT}/configmaps`;
    await client.raw('POST', maps, { metadata: { name: 'planted' }, data: { note: `my key is ${user.token}` } });
    expect((await lookForSecrets()).leaks).toEqual(['/api/v1/configmaps: the API key']);
    await client.raw('DELETE', `${maps}/planted`);
    const { leaks, read } = await lookForSecrets();
    expect(leaks).toEqual([]);
    expect(read.metrics).toBe(8);
    expect(read.logs).toBeGreaterThan(6);
    expect(read.objects).toBeGreaterThan(40);
    // One for each revision of the release.
    expect(read.secrets).toBeGreaterThanOrEqual(3);
  });

  it('leaves instances and resources alone when it is uninstalled', async () => {
    const before = await rented.identity();
    await release.helm(['uninstall', 'berth', '--wait', '--timeout', '5m']);
    expect(await rented.identity()).toEqual(before);
    const { items } = await client.list(GPU_INSTANCES, { namespace: TENANT });
    expect(items.map(({ metadata }) => metadata.name)).toEqual([rented.id]);
    const definitions = await client.list(CUSTOM_RESOURCE_DEFINITIONS);
    const ours = definitions.items.filter(({ metadata }) => metadata.name.endsWith('.berth.dev'));
    expect(ours).toHaveLength(CUSTOM_RESOURCES.length);
    await release.upgrade();
    expect(await rented.identity()).toEqual(before);
  });

  it('is removed completely by the commands of the manual', async () => {
    const manual = await readManual('run/install.md');
    await paste(lastBlock(manual, 'Remove'), { ...inject('e2e'), identity });
    const definitions = await client.list(CUSTOM_RESOURCE_DEFINITIONS);
    expect(definitions.items.map(({ metadata }) => metadata.name)).toEqual([]);
    const { items } = await client.list(NAMESPACES);
    expect(items.map(({ metadata }) => metadata.name)).toEqual(namespaces);
    const left = await world.kubectl(['get', KINDS_OF_CHART, '-o', 'name', '-l', 'app.kubernetes.io/part-of=berth']);
    expect(left.stdout).toBe('');
  });
});
