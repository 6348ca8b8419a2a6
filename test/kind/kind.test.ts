import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { createKubeClient } from '../../src/kube/client/rest-client.ts';
import { loadKubeConfig } from '../../src/kube/config/config.ts';
import { type Pod, PODS, SERVICES, STORAGE_CLASSES } from '../../src/kube/types.ts';
import { findCondition } from '../../src/kube/conditions.ts';
import { GPU_INSTANCES, gpuInstanceSpecSchema } from '../../src/resources/instances/gpu-instance.ts';
import type { List, OfferRecord } from '../../src/wire/records.ts';
import { BUSYBOX_IMAGE } from '../../tools/cluster/built/real-node.ts';
import { ask, findContainers, findEngine } from '../../tools/cluster/kind/engine.ts';
import { deleteKind, kindName } from '../../tools/cluster/kind/kind-cluster.ts';
import { leftoversOf } from '../../tools/cluster/supervisor/leftovers.ts';
import { readRecord } from '../../tools/cluster/supervisor/record.ts';
import { ROOT } from '../../tools/lib/paths.ts';
import { findProgram, run } from '../../tools/lib/shell.ts';
import { waitFor } from '../../tools/lib/wait.ts';
import { cgiModel } from '../support/cgi-model.ts';
import { pasteReadme } from '../support/readme.ts';

const lacks = [
  ...((await findProgram('kind')) === undefined ? ['kind'] : []),
  ...((await findEngine()) === undefined ? ['a container engine that answers'] : []),
];
/** A run of CI makes what it lacks, and may skip nothing. */
const isSkipped = lacks.length > 0 && process.env['CI'] === undefined;
const title = lacks.length === 0 ? 'on kind' : `on kind (skipped: this machine lacks ${lacks.join(' and ')})`;

describe.skipIf(isSkipped)(title, () => {
  let state = '';
  let supervisor: ChildProcess;
  let tour = '';
  let client: KubeClient;

  beforeAll(async () => {
    state = mkdtempSync(join(tmpdir(), 'berth-kind-'));
    const helper = join(ROOT, 'test/integration/tools/supervisor-process.ts');
    supervisor = spawn(process.execPath, [helper, state, 'server'], { stdio: ['ignore', 'pipe', 'pipe'] });
    if (supervisor.stdout === null || supervisor.stderr === null) throw new Error('no output');
    let said = '';
    supervisor.stderr.on('data', (text: Buffer) => (said = (said + String(text)).slice(-4000)));
    tour = String(await Promise.race([once(supervisor.stdout, 'data'), once(supervisor, 'close')]));
    expect(tour, said).toContain('ready');
    const kubeconfig = readRecord(state)?.kubeconfig;
    client = createKubeClient(await loadKubeConfig({ kubeconfig }), { clock: systemClock() });
  });

  afterAll(async () => {
    supervisor.kill('SIGKILL');
    await deleteKind(state);
    rmSync(state, { recursive: true, force: true });
  });

  it('prints a tour that rents, and logs in to a real container', async () => {
    const lines = tour.split('line by line:')[1]?.split('\n') ?? [];
    const script = ['set -e', `cd '${ROOT}'`, ...lines].join('\n');
    const { code, stdout, stderr } = await run('bash', ['-c', script], {
      timeout: 200_000,
      env: { ...process.env, XDG_CONFIG_HOME: state },
    });
    expect(code, stdout + stderr).toBe(0);
    expect(stdout).toMatch(/BERTH_GPU_NAME=NVIDIA-L4/);
  });

  it('does what the first five minutes of README.md say, line by line', async () => {
    const { code, stdout, stderr } = await pasteReadme(state, readFileSync(join(state, 'local.env'), 'utf8'));
    expect([code, stderr]).toEqual([0, stderr]);
    expect(stdout.match(/^BERTH_GPU_NAME=NVIDIA-L4$/gm)).toHaveLength(2);
    const left = async () => (await client.list(GPU_INSTANCES)).items.length === 0 || undefined;
    expect(await waitFor(left, { timeout: 120_000, interval: 500 })).toBe(true);
  });

  it('reaches models in pods', async () => {
    const { pod, service } = cgiModel('default', `${kindName(state)}-control-plane`);
    await client.create(PODS, pod);
    await client.create(SERVICES, service);
    const [, url = '', key = ''] = /Base URL +(\S+)\n +API key +(\S+)/.exec(tour) ?? [];
    let last = '';
    const call = async () => {
      const body = JSON.stringify({ model: 'parrot', messages: [{ role: 'user', content: 'hello' }] });
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const answer = await fetch(`${url}/chat/completions`, { method: 'POST', body, headers });
      last = `${answer.status} ${await answer.text()}`;
      return answer.status === 200;
    };
    await waitFor(call, { timeout: 60_000, interval: 500 });
    expect(last).toMatch(/^200 .*"content":"chat"/);
  });

  it('gives disks of the node, and no simulated node to a pod without GPUs', async () => {
    const { items } = await client.list(STORAGE_CLASSES);
    expect(items.map(({ metadata }) => metadata.name)).toEqual(['standard']);
    const pods: Pod[] = (await client.list(PODS)).items;
    const others = pods.filter(({ metadata, spec }) => {
      const ofDaemonSet = metadata.ownerReferences?.some(({ kind }) => kind === 'DaemonSet') ?? false;
      return spec?.nodeName?.startsWith('sim-') === true && !ofDaemonSet;
    });
    expect(others).toEqual([]);
  });

  it('rents both GPUs of its node, also where that has two cores', async () => {
    const [, url = '', key = ''] = /Base URL +(\S+)\n +API key +(\S+)/.exec(tour) ?? [];
    const available = async () => {
      const answer = await fetch(`${url}/offers`, { headers: { authorization: `Bearer ${key}` } });
      const { data } = (await answer.json()) as List<OfferRecord>;
      const offer = data.find(({ gpu_name: name, gpu_count: count }) => name === 'NVIDIA-L4' && count === 1);
      return offer?.available === 2 || undefined;
    };
    expect(await waitFor(available, { timeout: 60_000, interval: 500 })).toBe(true);
  });

  it('keeps a disk on the disk of the node, and not beyond its instance', async () => {
    const { engine } = readRecord(state)?.kind ?? { engine: 'podman' };
    const inNode = (script: string) => ask(engine, 'exec', `${kindName(state)}-control-plane`, 'sh', '-c', script);
    const folders = () => inNode('ls /var/local-path-provisioner');
    const ref = { namespace: 'default', name: 'disk' };
    const spec = { image: BUSYBOX_IMAGE, diskGb: 1, gpu: { product: 'NVIDIA-L4', count: 1 } };
    await client.create(GPU_INSTANCES, { metadata: ref, spec: gpuInstanceSpecSchema.parse(spec) });
    const ready = async () => {
      const { status } = await client.get(GPU_INSTANCES, ref);
      return findCondition(status?.conditions, 'Ready')?.status === 'True' || undefined;
    };
    expect(await waitFor(ready, { timeout: 120_000, interval: 500 })).toBe(true);
    expect(await folders()).toMatch(/_default_disk-disk$/m);
    expect(await inNode('stat -f -c %T /var/local-path-provisioner')).not.toBe('tmpfs');
    await client.delete(GPU_INSTANCES, ref);
    const gone = async () => (await folders()) === '' || undefined;
    expect(await waitFor(gone, { timeout: 120_000, interval: 500 })).toBe(true);
  });

  it('leaves nothing', async () => {
    const record = readRecord(state);
    await client.close();
    supervisor.kill('SIGINT');
    expect(await once(supervisor, 'exit')).toEqual([0, null]);
    expect((await findContainers(kindName(state))).containers).toEqual([]);
    expect(record === undefined ? ['no record'] : await leftoversOf(record)).toEqual([]);
    const { stdout } = await run('ip', ['-4', 'route']);
    const routes = record?.kind?.routes?.to ?? [];
    expect(routes).toHaveLength(2);
    for (const cidr of routes) expect(stdout).not.toContain(cidr);
    expect(readRecord(state)).toBeUndefined();
  });
});
