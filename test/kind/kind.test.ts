import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { createKubeClient } from '../../src/kube/client/rest-client.ts';
import { loadKubeConfig } from '../../src/kube/config/config.ts';
import { type Pod, PODS, SERVICES, STORAGE_CLASSES } from '../../src/kube/types.ts';
import { findContainers, findEngine } from '../../tools/cluster/kind/engine.ts';
import { deleteKind, kindName } from '../../tools/cluster/kind/kind-cluster.ts';
import { leftoversOf } from '../../tools/cluster/supervisor/leftovers.ts';
import { readRecord } from '../../tools/cluster/supervisor/record.ts';
import { ROOT } from '../../tools/lib/paths.ts';
import { findProgram, run } from '../../tools/lib/shell.ts';
import { waitFor } from '../../tools/lib/wait.ts';
import { cgiModel } from '../support/cgi-model.ts';

const lacks = [
  ...((await findProgram('kind')) === undefined ? ['kind'] : []),
  ...((await findEngine()) === undefined ? ['a container engine that answers'] : []),
];
const title = lacks.length === 0 ? 'on kind' : `on kind (skipped: this machine lacks ${lacks.join(' and ')})`;

describe.skipIf(lacks.length > 0)(title, () => {
  let state = '';
  let supervisor: ChildProcess;
  let tour = '';
  let client: KubeClient;

  beforeAll(async () => {
    state = mkdtempSync(join(tmpdir(), 'berth-kind-'));
    const helper = join(ROOT, 'test/integration/tools/supervisor-process.ts');
    supervisor = spawn(process.execPath, [helper, state, 'server'], { stdio: ['ignore', 'pipe', 'inherit'] });
    if (supervisor.stdout === null) throw new Error('no output');
    tour = String(await Promise.race([once(supervisor.stdout, 'data'), once(supervisor, 'exit')]));
    expect(tour).toContain('ready');
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

  it('reaches models in pods', async () => {
    const { pod, service } = cgiModel('default', `${kindName(state)}-control-plane`);
    await client.create(PODS, pod);
    await client.create(SERVICES, service);
    const [, url = '', key = ''] = /Base URL +(\S+)\n +API key +(\S+)/.exec(tour) ?? [];
    const call = async () => {
      const body = JSON.stringify({ model: 'parrot', messages: [{ role: 'user', content: 'hello' }] });
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const answer = await fetch(`${url}/chat/completions`, { method: 'POST', body, headers });
      return answer.status === 200 && answer.text();
    };
    expect(await waitFor(call, { timeout: 60_000, interval: 500 })).toContain('"content":"chat"');
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
