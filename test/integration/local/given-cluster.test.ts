import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { systemClock } from '../../../src/kube/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config.ts';
import { createKubeClient } from '../../../src/kube/rest-client.ts';
import { NAMESPACES } from '../../../src/kube/types.ts';
import { connectGiven } from '../../../src/local/given-cluster.ts';
import { freePorts } from '../../../src/local/ports.ts';

const { kubeconfig } = inject('cluster');
const client = createKubeClient(await loadKubeConfig({ kubeconfig }), { clock: systemClock() });
const namespace = `given-${randomBytes(4).toString('hex')}`;
const signal = new AbortController().signal;
let folder = '';

/** The test cluster's kubeconfig with some words replaced. */
function variant(name: string, replace: (text: string) => string): string {
  const path = join(folder, name);
  writeFileSync(path, replace(readFileSync(kubeconfig, 'utf8')), { mode: 0o600 });
  return path;
}

function connect(path: string) {
  return connectGiven({ kubeconfig: path, context: undefined, signal });
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'berth-given-'));
  await client.create(NAMESPACES, { metadata: { name: namespace } });
});

afterAll(async () => {
  await client.delete(NAMESPACES, { name: namespace });
  await client.close();
  rmSync(folder, { recursive: true });
});

describe('a given cluster', () => {
  it('is used when it answers and lets us work', async () => {
    const given = await connect(kubeconfig);
    await expect(given.get(NAMESPACES, { name: namespace })).resolves.toMatchObject({ kind: 'Namespace' });
    await given.close();
  });

  it('is refused with the reason when its kubeconfig points nowhere', async () => {
    const [port = 0] = await freePorts(1);
    const path = variant('nowhere', (text) => text.replace(/https:\/\/[^"]+/, `https://127.0.0.1:${port}`));
    await expect(connect(path)).rejects.toMatchObject({
      name: 'LocalFailure',
      message: expect.stringMatching(new RegExp(`127\\.0\\.0\\.1:${port}.* does not answer`)) as string,
      remedy: expect.stringContaining('KUBECONFIG') as string,
    });
  });

  it('is refused when there is no such kubeconfig, or its token is not accepted', async () => {
    await expect(connect(join(folder, 'missing'))).rejects.toMatchObject({ name: 'LocalFailure' });
    const path = variant('stranger', (text) => text.replace(/"token": "[^"]+"/, '"token": "unknown"'));
    await expect(connect(path)).rejects.toMatchObject({
      name: 'LocalFailure',
      message: expect.stringContaining('does not accept') as string,
    });
  });

  it('is refused with the missing permission when its user may not work there', async () => {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/default/token`;
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
    const { status } = await client.raw<{ status: { token: string } }>('POST', path, request);
    const weak = variant('weak', (text) => text.replace(/"token": "[^"]+"/, `"token": "${status.token}"`));
    await expect(connect(weak)).rejects.toMatchObject({
      name: 'LocalFailure',
      message: expect.stringContaining('may not create customresourcedefinitions') as string,
    });
  });
});
