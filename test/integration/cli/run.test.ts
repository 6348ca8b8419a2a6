import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { BUSYBOX_IMAGE } from '../../../tools/cluster/built/real-node.ts';
import { freePorts } from '../../../tools/lib/free-ports.ts';
import { type BerthCli, installCli } from '../../support/berth-cli.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { type RoundRobin, roundRobin } from '../../support/http/round-robin.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { describeWith } from '../../support/needs.ts';
import { finished } from '../../support/ssh-client.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

describeWith('real node')('on the real node', () => {
  let tenant: TestNamespace;
  let replicas: BerthProcess[];
  let others: BerthProcess[];
  let proxy: RoundRobin;
  let cli: BerthCli;
  let env: NodeJS.ProcessEnv;

  const isAlive = ({ child }: BerthProcess): boolean => child.exitCode === null && child.signalCode === null;

  beforeAll(async () => {
    tenant = await testNamespace();
    await kindsCounted(tenant.client);
    const { kubeconfig } = inject('cluster');
    const [port = 0] = await freePorts(1);
    const terminals = `127.0.0.1:${port}`;
    const api = () => startBerth(kubeconfig, 'api', undefined, { env: { BERTH_TERMINAL_URL: `http://${terminals}` } });
    others = await Promise.all([
      startBerth(kubeconfig, 'controller'),
      startBerth(kubeconfig, 'ssh', undefined, { env: { BERTH_TERMINAL_ADDR: terminals } }),
    ]);
    replicas = await Promise.all([api(), api()]);
    // The first one that lives has all connections, so that its end is felt.
    proxy = await roundRobin(() =>
      replicas
        .filter(isAlive)
        .slice(0, 1)
        .map(({ url }) => new URL(url)),
    );
    const { token } = await createKey(tenant.client, { namespace: tenant.name, displayName: 'renter' });
    const headers = { authorization: `Bearer ${token}` };
    for (const { url } of replicas)
      await waitFor('the key', async () => (await fetch(`${url}/api/v1/offers`, { headers })).ok);
    cli = await installCli(proxy.url);
    env = { ...cli.env, BERTH_URL: proxy.url, BERTH_API_KEY: token };
  }, 120_000);
  afterAll(async () => {
    await cli?.[Symbol.asyncDispose]();
    await proxy?.[Symbol.asyncDispose]();
    for (const one of [...replicas, ...others]) if (isAlive(one)) await one[Symbol.asyncDispose]();
    await tenant[Symbol.asyncDispose]();
  });

  it('berth run goes from an empty home to the result in one command, through the kill of a replica', async () => {
    const project = join(cli.home, 'project');
    await mkdir(project);
    const steps = 'i=0; while [ $i -lt 8 ]; do echo step $i; sleep 1; i=$((i + 1)); done';
    await writeFile(join(project, 'train.sh'), `${steps}\ncat data >model\nexit 3\n`);
    await writeFile(join(project, 'data'), 'what was learnt\n');
    const words = [
      'run',
      '--gpu',
      'l4',
      '--image',
      BUSYBOX_IMAGE,
      '--upload',
      project,
      '--output',
      join(cli.home, 'out'),
      '--yes',
    ];
    const child = spawn(cli.berth, [...words, '--', 'sh', 'train.sh'], { env });
    let out = '';
    child.stdout.on('data', (part) => (out += String(part)));
    const end = finished(child);
    await waitFor('the first steps', () => out.includes('step 1') || child.exitCode !== null, 120_000);
    replicas[0]?.child.kill('SIGKILL');
    const { code, stderr } = await end;
    expect({ code, stderr }).toMatchObject({ code: 3, stderr: expect.stringContaining('is given back') as string });
    expect(out).toBe(Array.from({ length: 8 }, (_, step) => `step ${step}\n`).join(''));
    expect(stderr).toContain('The connection broke. Trying again.');
    expect(await readdir(join(cli.home, 'out'))).toEqual(['model']);
    expect(await readFile(join(cli.home, 'out/model'), 'utf8')).toBe('what was learnt\n');
    await waitFor('the end of the rental', async () => {
      return (await tenant.client.list(GPU_INSTANCES, { namespace: tenant.name })).items.length === 0;
    });
  }, 200_000);
});
