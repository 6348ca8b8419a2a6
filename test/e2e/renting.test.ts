import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { API_KEYS } from '../../src/resources/api-key.ts';
import { type Secret, SECRETS } from '../../src/kube/types.ts';
import { PULL_SECRET } from '../../src/resources/registry-credential.ts';
import { USAGE_RECORDS } from '../../src/resources/usage-record.ts';
import { ROOT, stateFolder } from '../../tools/lib/paths.ts';
import { type BerthCli, installCli } from '../support/berth-cli.ts';
import { PythonClient } from '../support/generated/python-client.ts';
import { PASSWORD, type PrivateRegistry, startRegistry, USER } from '../support/registry/registry.ts';
import { lastBlock, readManual } from '../support/manual.ts';
import { waitFor } from '../support/wait-for.ts';
import { tenant, type Tenant } from './support/http.ts';
import { INSTANCE_IMAGE } from './support/images.ts';
import { paste } from './support/paste.ts';
import { forwarderOf } from './support/people.ts';
import { kill, replicasOf } from './support/processes.ts';
import { NAMESPACE, sshAt, TENANT } from './support/release.ts';
import { cliRenter, httpRenter, kubectlRenter, pythonRenter, type Renter } from './support/renters.ts';
import { newIdentity } from './support/ssh.ts';
import { World } from './support/world.ts';

const MINUTES = 60_000;
const { initPid, ...options } = inject('e2e');

/** Ten cents for each second. */
const POOL = { currency: 'USD', prices: [{ product: '*', onDemand: '360', interruptible: '360' }] };

/** Serves a page on the port, and counts in the log. */
const ON_START = `
echo "served for $GREETING" > /tmp/index.html
httpd -p 8080 -h /tmp
count=0
while sleep 1; do count=$((count + 1)); echo "$GREETING $count"; done &
`;

describe('a key is all that a renter needs', () => {
  let world: World;
  let registry: PrivateRegistry;
  let user: Tenant;
  let cli: BerthCli | undefined;
  let base: string;

  beforeAll(async () => {
    world = await World.open(options);
    const config = { defaultImage: INSTANCE_IMAGE, imagePullPolicy: 'Always', logLevel: 'info' };
    const values = { config, defaultPool: { spec: POOL } };
    await world.release.upgrade(values);
    await world.release.upgrade({ ...values, ...sshAt(await world.service('berth-ssh')) });
    registry = await startRegistry(initPid);
    const { host, port } = await world.service('berth-api');
    base = `http://${host}:${port}`;
    user = await tenant(world.client, TENANT, base);
    await waitFor('the key works', async () => (await user.call('GET', '/api/v1/offers')).status === 200);
  });
  afterAll(async () => {
    await cli?.[Symbol.asyncDispose]();
    await registry[Symbol.asyncDispose]();
    await world.client.close();
  });

  const ways: Record<string, () => Promise<Renter>> = {
    'requests over HTTP': () => Promise.resolve(httpRenter(user, base, newIdentity())),
    'berth, the command line': async () => {
      cli = await installCli(base);
      return cliRenter(cli, user, base, newIdentity());
    },
    'kubectl berth, from a kubeconfig alone': async () => {
      cli ??= await installCli(base);
      const kubeconfig = join(cli.home, 'kubeconfig');
      await forwarderOf(world, TENANT, kubeconfig);
      return kubectlRenter(cli, { kubectl: options.kubectl, kubeconfig, namespace: TENANT }, newIdentity());
    },
    'the generated Python client': async () => {
      const folder = join(stateFolder(), 'e2e', 'python');
      return pythonRenter(await PythonClient.generate({ url: base, token: user.token }, folder), newIdentity());
    },
  };

  /** Kills all replicas of the api role at once, so that the one that serves is among them, and waits for the next ones. */
  async function killReplicas(): Promise<void> {
    const pids = await replicasOf(initPid, 'api');
    // One of before the last upgrade may still serve, too.
    expect(pids.length).toBeGreaterThanOrEqual(2);
    await Promise.all(pids.map((pid) => kill(initPid, pid)));
  }

  /** Replaces the killed replicas, since the kubelet waits longer after every kill. The Service is never without one. */
  async function replaceReplicas(): Promise<void> {
    const all = ['deployment', '-n', NAMESPACE, '-l', 'app.kubernetes.io/component=api'];
    expect(await world.kubectl(['rollout', 'restart', ...all])).toMatchObject({ code: 0 });
    expect(await world.kubectl(['rollout', 'status', ...all, '--timeout=2m'])).toMatchObject({ code: 0 });
  }

  it.each(Object.entries(ways))(
    'rents a private image by %s: with variables, a port, a start script, its log, SSH, more time, a bill',
    async (way, renterBy) => {
      const renter = await renterBy();
      const name = way.replaceAll(/[^a-z]+/gi, '-').toLowerCase();
      const image = await registry.push(`private/${name}:1`);
      const key = await renter.addKey(name);
      const credentials = { name, server: registry.server, username: USER, password: PASSWORD };
      await renter.addRegistry(credentials);

      const { id: made } = await renter.rent({
        name,
        template_image: image,
        registry: name,
        env: { GREETING: name },
        ports: [{ container_port: 8080 }],
        on_start: ON_START,
        disk_gb: 1,
        max_duration: '1h',
      });
      const id = String(made);
      const running = await waitFor(
        'the instance runs',
        async () => {
          const record = await renter.show(id);
          if (record['state'] === 'failed') throw new Error(`the instance failed: ${String(record['message'])}`);
          return record['state'] === 'running' && record;
        },
        3 * MINUTES,
      );
      expect(running).toMatchObject({ template_image: image, registry: name, env_names: ['GREETING'] });

      const log = renter.follow(id);
      try {
        const counted = (): string[] => log.lines().filter((text) => text.startsWith(`${name} `));
        await waitFor('the log', () => counted().length >= 3);
        await killReplicas();
        const before = counted().length;
        await waitFor('the log goes on', () => counted().length >= before + 10, 3 * MINUTES);
        // None is missing and none came twice.
        expect(counted()).toEqual(counted().map((_, index) => `${name} ${index + 1}`));
      } finally {
        await log.stop();
      }
      await replaceReplicas();

      const headers = { authorization: `Bearer ${user.token}` };
      const page = await fetch(`${base}/api/v1/instances/${id}/proxy/8080/`, { headers });
      expect(await page.text()).toBe(`served for ${name}\n`);
      expect(await renter.run(id, 'echo "$GREETING"')).toBe(`${name}\n`);

      const until = Date.parse(String((await renter.show(id))['expires_at']));
      expect(await renter.extend(id)).toMatchObject({ max_duration: '2h' });
      await waitFor('the later end', async () => {
        return Date.parse(String((await renter.show(id))['expires_at'])) === until + 60 * MINUTES;
      });

      await renter.giveBack(id);
      const bill = await waitFor(
        'the bill',
        async () => {
          const { items } = await world.client.list(USAGE_RECORDS, { namespace: TENANT });
          return items.find(({ spec }) => spec.instance === id)?.spec;
        },
        2 * MINUTES,
      );
      expect(bill).toMatchObject({ currency: 'USD', gpuCount: 1, product: 'NVIDIA-L4' });
      expect(Number(bill.cost)).toBeCloseTo(bill.gpuSeconds / 10, 1);
      const days = `from=${bill.startedAt?.slice(0, 10)}&to=${bill.endedAt.slice(0, 10)}`;
      const usage = await fetch(`${base}/api/v1/usage?group=instance&${days}`, { headers });
      const { items } = (await usage.json()) as { items: { group: string; cost: string; gpu_seconds: number }[] };
      const own = items.find((item) => item.group === id);
      expect(own).toMatchObject({ cost: bill.cost, gpu_seconds: bill.gpuSeconds, open: false });
      // The log alone took longer.
      expect(bill.gpuSeconds).toBeGreaterThan(10);
      const told = await waitFor('the end of the history', async () => {
        const history = await renter.events(id);
        return history['ended_at'] !== null && history;
      });
      const reasons = (told['data'] as { reason: string }[]).map(({ reason }) => reason);
      expect(reasons).toEqual(expect.arrayContaining(['Claimed', 'Ready', 'Deleting', 'Deleted']));
      await renter.removeRegistry(name);
      await renter.removeKey(key['id']);
      const keys = (await world.client.list(API_KEYS, { namespace: TENANT })).items;
      expect(keys.map(({ metadata }) => metadata.name)).toEqual(['e2e']);
    },
  );

  it('runs where one registry is to be had, which asks for credentials', async () => {
    const digest = await registry.pushArchive(join(ROOT, 'dist/berth-image.tar'), 'mirror/berth-dev/berth:e2e');
    await registry.push('mirror/berth-e2e-instance:1');
    const auth = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
    const auths = { [registry.server]: { username: USER, password: PASSWORD, auth } };
    const own: Secret = {
      metadata: { namespace: NAMESPACE, name: 'mirror' },
      type: 'kubernetes.io/dockerconfigjson',
      data: { '.dockerconfigjson': Buffer.from(JSON.stringify({ auths })).toString('base64') },
    };
    await world.client.create(SECRETS, own);
    await world.release.upgrade({
      config: { defaultImage: INSTANCE_IMAGE, imagePullPolicy: 'Always', logLevel: 'info' },
      defaultPool: { spec: POOL },
      ...sshAt(await world.service('berth-ssh')),
      image: { pullPolicy: 'Always', digest },
      global: { imageRegistry: `${registry.server}/mirror`, imagePullSecrets: [{ name: 'mirror' }] },
    });

    const renter = httpRenter(user, base, newIdentity());
    const key = await renter.addKey('mirror');
    const rented = await user.call('POST', '/api/v1/instances', { name: 'mirrored', disk_gb: 1 });
    expect(rented.status).toBe(201);
    const id = String(rented.body['id']);
    await waitFor('the instance runs', async () => (await renter.show(id))['state'] === 'running', 3 * MINUTES);
    expect(await renter.run(id, 'echo in')).toBe('in\n');

    const { spec } = await world.pod(TENANT, `berth.dev/instance=${id}`);
    const images = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map(({ image = '' }) => image);
    expect(images).toEqual([`localhost/mirror/berth-dev/berth@${digest}`, 'localhost/mirror/berth-e2e-instance:1']);
    const copy = await world.client.get(SECRETS, { namespace: TENANT, name: PULL_SECRET });
    const held = Buffer.from(copy.data?.['.dockerconfigjson'] ?? '', 'base64').toString();
    // The password opens the whole registry; for a tenant's own image there the kubelet does not send it.
    expect(Object.keys((JSON.parse(held) as { auths: object }).auths)).toEqual([
      'localhost/mirror/berth-dev/berth',
      'localhost/mirror/berth-e2e-instance',
    ]);

    const controller = ['--as', `system:serviceaccount:${NAMESPACE}:berth-controller`];
    for (const change of [{ name: 'another' }, { namespace: NAMESPACE }, { ownerReferences: [] }]) {
      const { name, namespace, labels, ownerReferences } = copy.metadata;
      const metadata = { name, namespace, labels, ownerReferences, ...change };
      const wanted = JSON.stringify({ apiVersion: 'v1', kind: 'Secret', ...copy, metadata });
      const made = await world.kubectl([...controller, 'create', '--dry-run=server', '-f', '-'], wanted);
      expect(made.stderr).toContain('this role of Berth makes the Secret berth-ssh-host-key in its own namespace');
    }

    await renter.giveBack(id);
    await waitFor(
      'the bill',
      async () => {
        const { items } = await world.client.list(USAGE_RECORDS, { namespace: TENANT });
        return items.some((record) => record.spec.instance === id && Number(record.spec.cost) > 0);
      },
      2 * MINUTES,
    );
    await renter.removeKey(key['id']);
  });

  it('leaves nothing behind', async () => {
    const manual = await readManual('run/install.md');
    await paste(lastBlock(manual, 'Remove'), { ...options, identity: newIdentity() });
  });
});
