import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { run } from '../../../tools/lib/shell.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { describeWith } from '../../support/needs.ts';
import { pasteReadme } from '../../support/readme.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

describeWith('real node', 'ssh')('the first five minutes of README.md', () => {
  let tenant: TestNamespace;
  let berth: BerthProcess;
  let folder: string;
  /** As npm start writes them. */
  let variables: string;

  beforeAll(async () => {
    const { kubeconfig, programs } = inject('cluster');
    tenant = await testNamespace();
    await kindsCounted(tenant.client);
    berth = await startBerth(kubeconfig);
    const { token } = await createKey(tenant.client, { namespace: tenant.name, displayName: 'reader' });
    const headers = { authorization: `Bearer ${token}` };
    await waitFor('the key', async () => (await fetch(`${berth.url}/api/v1/offers`, { headers })).ok);
    folder = await mkdtemp(join(tmpdir(), 'berth-readme-'));
    const own = join(folder, 'kubeconfig');
    await copyFile(kubeconfig, own);
    const PATH = [programs, process.env['PATH']].filter(Boolean).join(delimiter);
    const context = ['config', 'set-context', '--current', `--namespace=${tenant.name}`];
    expect(await run('kubectl', [...context, '--kubeconfig', own], { env: { ...process.env, PATH } })).toMatchObject({
      code: 0,
    });
    variables = [
      `BERTH_URL=${berth.url}/api/v1`,
      `BERTH_API_KEY=${token}`,
      `KUBECONFIG='${own}'`,
      `PATH='${PATH}'`,
      '',
    ].join('\n');
  }, 300_000);
  afterAll(async () => {
    await berth?.[Symbol.asyncDispose]();
    await tenant[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  const rented = async (): Promise<readonly GpuInstance[]> =>
    (await tenant.client.list(GPU_INSTANCES, { namespace: tenant.name })).items;

  it('work as they are pasted, and leave nothing rented', async () => {
    const { code, stdout, stderr } = await pasteReadme(folder, variables);
    expect([code, stderr]).toEqual([0, stderr]);
    expect(stdout).toContain('NVIDIA-L4');
    expect(stdout).toMatch(/^gpuinstance\.berth\.dev\/sample created$/m);
    // The variables of a session, and those of a run.
    expect(stdout.match(/^BERTH_GPU_NAME=NVIDIA-L4$/gm)).toHaveLength(2);
    expect((await rented()).filter(({ metadata }) => metadata.deletionTimestamp === undefined)).toEqual([]);
    await waitFor('the ends', async () => (await rented()).length === 0);
  });
});
