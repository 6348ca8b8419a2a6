import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { KubeClient } from '../../src/kube/client.ts';
import { systemClock } from '../../src/kube/clock.ts';
import { loadKubeConfig } from '../../src/kube/config.ts';
import { createKubeClient } from '../../src/kube/rest-client.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  NAMESPACES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  type Pod,
  SERVICES,
} from '../../src/kube/types.ts';
import { GPU_INSTANCES } from '../../src/resources/gpu-instance.ts';
import { INSTANCE_TEMPLATES } from '../../src/resources/instance-template.ts';
import { waitFor } from '../support/wait-for.ts';
import { signIn, tenant, type Tenant } from './support/http.ts';
import { INSTANCE_IMAGE, MODEL_IMAGE, NON_ROOT_IMAGE } from './support/images.ts';
import { NAMESPACE, Release, ROLES, TENANT } from './support/release.ts';
import { findSecrets, reportUse } from './support/review.ts';
import { askPort, login, newIdentity, runOver, type SshPlace } from './support/ssh.ts';

const MINUTES = 60_000;
const identity = newIdentity();

describe('a release on a real node', () => {
  let client: KubeClient;
  let release: Release;
  let user: Tenant;
  let instance: string;

  /** The cluster address of one of the release's Services. */
  async function service(name: string): Promise<{ host: string; port: number }> {
    const { spec } = await client.get(SERVICES, { namespace: NAMESPACE, name });
    return { host: spec?.clusterIP ?? '', port: spec?.ports?.[0]?.port ?? 0 };
  }

  async function podsOf(namespace: string, labelSelector: string): Promise<Pod[]> {
    return (await client.list(PODS, { namespace, labelSelector })).items;
  }

  async function record(): Promise<Record<string, unknown>> {
    const { status, body } = await user.call('GET', `/api/v1/instances/${instance}`);
    expect(status).toBe(200);
    return body;
  }

  async function running(): Promise<Record<string, unknown>> {
    return waitFor(
      'the instance runs',
      async () => {
        const found = await record();
        if (found['state'] === 'failed') throw new Error(`the instance failed: ${String(found['message'])}`);
        return found['state'] === 'running' ? found : undefined;
      },
      4 * MINUTES,
    );
  }

  async function place(): Promise<SshPlace> {
    const { known_hosts: hostKey, user: name } = (await record())['ssh'] as { known_hosts: string; user: string };
    return { ...(await service('berth-ssh')), user: name, hostKey };
  }

  /** What must not change while the release does. */
  async function instancePod(): Promise<{ uid: string | undefined; restarts: number | undefined; startedAt: unknown }> {
    const [pod] = await podsOf(TENANT, `berth.dev/instance=${instance}`);
    const main = pod?.status?.containerStatuses?.find(({ name }) => name === 'main');
    return { uid: pod?.metadata.uid, restarts: main?.restartCount, startedAt: main?.state?.running?.startedAt };
  }

  beforeAll(async () => {
    const { kubeconfig, helm } = inject('e2e');
    client = createKubeClient(await loadKubeConfig({ kubeconfig }), { clock: systemClock() });
    release = new Release(helm, kubeconfig);
    await release.upgrade();
  });
  afterAll(async () => {
    await client.close();
  });

  it('runs every role with its own account', async () => {
    for (const role of ROLES) {
      const pods = await podsOf(NAMESPACE, `app.kubernetes.io/component=${role}`);
      expect(pods).toHaveLength(2);
      expect(pods.map(({ spec }) => spec?.serviceAccountName)).toEqual([`berth-${role}`, `berth-${role}`]);
    }
  });

  it('passes its own test', async () => {
    expect(await release.helm(['test', 'berth', '--timeout', '3m'])).toContain('Succeeded');
  });

  it('offers the GPUs of the node over the Service', async () => {
    const { host, port } = await service('berth-api');
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
    const created = await user.call('POST', '/api/v1/instances', { name: 'e2e', disk_gb: 1 });
    expect(created.status, JSON.stringify(created.body)).toBe(201);
    instance = String(created.body['id']);
    await running();
    const session = await login(await place(), identity);
    expect(await runOver(session, 'echo $((6 * 7)) && touch /workspace/kept')).toBe('42\n');
    await runOver(session, 'mkdir -p /tmp/www && echo forwarded > /tmp/www/x && httpd -p 127.0.0.1:8099 -h /tmp/www');
    expect(await askPort(session, 8099, 'GET /x HTTP/1.0\r\n\r\n')).toContain('forwarded');
    session.end();
  });

  it('calls a model in the cluster', async () => {
    const labels = { app: 'model' };
    const restricted = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };
    await client.create(PODS, {
      metadata: { namespace: TENANT, name: 'model', labels },
      spec: {
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          {
            name: 'server',
            image: MODEL_IMAGE,
            imagePullPolicy: 'Never',
            securityContext: restricted,
            ports: [{ containerPort: 8000 }],
          },
        ],
      },
    });
    await client.create(SERVICES, {
      metadata: { namespace: TENANT, name: 'model', labels: { 'berth.dev/model-server': 'true' } },
      spec: { selector: labels, ports: [{ port: 80, targetPort: 8000 }] },
    });
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
    const { body } = await user.call('GET', '/api/v1/models');
    expect(body['data']).toEqual([expect.objectContaining({ id: 'tiny-random' })]);
  });

  it('keeps a running instance through an upgrade and a rollback', async () => {
    const before = await instancePod();
    const old = new Set((await podsOf(NAMESPACE, 'berth.dev/metrics=true')).map(({ metadata }) => metadata.uid));
    await release.upgrade({ config: { logLevel: 'debug', defaultImage: NON_ROOT_IMAGE } });
    await waitFor(
      'every replica is a new one',
      async () => {
        const pods = await podsOf(NAMESPACE, 'berth.dev/metrics=true');
        return !pods.some(({ metadata }) => old.has(metadata.uid));
      },
      2 * MINUTES,
    );
    await running();
    expect(await instancePod()).toEqual(before);
    await release.helm(['rollback', 'berth', '1', '--wait', '--timeout', '10m']);
    await running();
    expect(await instancePod()).toEqual(before);
    const session = await login(await place(), identity);
    expect(await runOver(session, 'ls /workspace')).toContain('kept');
    session.end();
  });

  it('lets only the controller write status, and gives the controller back what others take', async () => {
    const claim = { status: { claim: { node: 'elsewhere' } } };
    const write = client.patch(GPU_INSTANCES, { namespace: TENANT, name: instance }, claim, {
      type: 'merge',
      subresource: 'status',
    });
    await expect(write).rejects.toThrow("only Berth's controller writes gpuinstances/status");
    const [pod] = await podsOf(TENANT, `berth.dev/instance=${instance}`);
    const ref = { namespace: TENANT, name: pod?.metadata.name ?? '' };
    await client.patch(PODS, ref, { metadata: { labels: { 'berth.dev/instance': null } } }, { type: 'merge' });
    await waitFor(
      'the label is back',
      async () => (await podsOf(TENANT, `berth.dev/instance=${instance}`)).length === 1,
    );
  });

  it('gives the GPUs back when the instance is deleted', async () => {
    expect((await user.call('DELETE', `/api/v1/instances/${instance}`)).status).toBe(200);
    await waitFor(
      'the instance is gone',
      async () => {
        return (await user.call('GET', `/api/v1/instances/${instance}`)).status === 404;
      },
      2 * MINUTES,
    );
    expect(await podsOf(TENANT, `berth.dev/instance=${instance}`)).toEqual([]);
  });

  it('runs a non-root image where Pod Security restricted is enforced', async () => {
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await client.patch(NAMESPACES, { name: TENANT }, { metadata: { labels } }, { type: 'merge' });
    const created = await user.call('POST', '/api/v1/instances', { template_image: NON_ROOT_IMAGE, disk_gb: 1 });
    expect(created.status, JSON.stringify(created.body)).toBe(201);
    instance = String(created.body['id']);
    await running();
    const session = await login(await place(), identity);
    expect(await runOver(session, 'id -u')).not.toBe('0\n');
    session.end();
  });

  it('forwards ports of an image without tools, keeps a disk on request and ends what has expired', async () => {
    await client.create(INSTANCE_TEMPLATES, {
      metadata: { namespace: TENANT, name: 'server' },
      spec: { displayName: 'server', image: INSTANCE_IMAGE, runtype: 'args', command: ['httpd', '-f', '-p', '8080'] },
    });
    const ports = [{ containerPort: 8080, protocol: 'TCP' as const }];
    const wanted = { runtype: 'args', image: NON_ROOT_IMAGE, ports, command: ['httpd', '-f', '-p', '8080'] };
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
      async () => {
        const one = await client.get(GPU_INSTANCES, { namespace: TENANT, name: 'server' });
        return one.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True' ? one : undefined;
      },
      2 * MINUTES,
    );
    const { user: name = '', knownHosts: hostKey = '' } = found.status?.ssh ?? {};
    const session = await login({ ...(await service('berth-ssh')), user: name, hostKey }, identity);
    expect(await askPort(session, 8080, 'GET /x HTTP/1.0\r\n\r\n')).toContain('404 Not Found');
    session.end();
    const { host, port } = await service('berth-api');
    const page = await fetch(`http://${host}:${port}/api/v1/instances/server/proxy/8080/x`, {
      headers: { authorization: `Bearer ${user.token}` },
    });
    expect(await page.text()).toContain('404 Not Found');
    await waitFor(
      'the server has expired',
      async () =>
        (await client.list(GPU_INSTANCES, { namespace: TENANT })).items.every(
          ({ metadata }) => metadata.name !== 'server',
        ),
      2 * MINUTES,
    );
    const { items } = await client.list(PERSISTENT_VOLUME_CLAIMS, { namespace: TENANT });
    expect(items.map(({ metadata }) => metadata.name)).toContain('server-disk');
  });

  it('takes an SSH key back', async () => {
    const { body } = await user.call('GET', '/api/v1/ssh-keys');
    const [key] = body['data'] as { id: number }[];
    expect((await user.call('DELETE', `/api/v1/ssh-keys/${key?.id}`)).status).toBe(200);
    await expect(login(await place(), identity)).rejects.toThrow(/authentication/i);
  });

  it('shows the dashboard and lets an admin of the namespace make and revoke keys there', async () => {
    const { host, port } = await service('berth-api');
    const admin = await signIn(client, TENANT, `http://${host}:${port}`);
    const made = await admin('POST', '/keys', { namespace: TENANT, name: 'made', scopes: ['compute:read'] });
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    const offers = async (): Promise<number> => {
      const headers = { authorization: `Bearer ${String(made.body['token'])}` };
      return (await fetch(`http://${host}:${port}/api/v1/offers`, { headers })).status;
    };
    await waitFor('the key works', async () => (await offers()) === 200);
    expect((await admin('POST', `/keys/${TENANT}/${String(made.body['id'])}/revoke`, {})).status).toBe(200);
    await waitFor('the key is dead', async () => (await offers()) === 401);
  });

  it('uses every right it was given and misses none', async () => {
    const report = await reportUse(release, await readFile(inject('e2e').auditLog, 'utf8'));
    expect(report).toEqual({ refused: [], unused: [] });
  });

  it('leaves no token or private key in logs, objects or metrics', async () => {
    expect(await findSecrets(client, [user.token, 'PRIVATE KEY'])).toEqual([]);
  });

  it('leaves instances and resources alone when it is uninstalled', async () => {
    const before = await instancePod();
    await release.helm(['uninstall', 'berth', '--wait', '--timeout', '5m']);
    expect(await instancePod()).toEqual(before);
    const { items } = await client.list(GPU_INSTANCES, { namespace: TENANT });
    expect(items.map(({ metadata }) => metadata.name)).toEqual([instance]);
    const definitions = await client.list(CUSTOM_RESOURCE_DEFINITIONS);
    expect(definitions.items.filter(({ metadata }) => metadata.name.endsWith('.berth.dev'))).toHaveLength(6);
    await release.upgrade();
    await client.delete(GPU_INSTANCES, { namespace: TENANT, name: instance });
    await waitFor(
      'the instance is gone',
      async () => {
        return (await client.list(GPU_INSTANCES, { namespace: TENANT })).items.length === 0;
      },
      2 * MINUTES,
    );
  });
});
