import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { NAMESPACES } from '../../../src/kube/types.ts';
import { connectGiven } from '../../../tools/cluster/given-cluster.ts';
import { supervise } from '../../../tools/cluster/supervisor/supervise.ts';
import { cacheFolder } from '../../../tools/lib/paths.ts';
import { freePorts } from '../../../tools/lib/free-ports.ts';
import { run } from '../../../tools/lib/shell.ts';
import { API_KEYS } from '../../../src/resources/api-key.ts';

const { kubeconfig, programs } = inject('cluster');
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

/** Keys that `npm start` made for its tour. */
async function localKeys() {
  const { items } = await client.list(API_KEYS, { namespace: 'default' });
  return items.filter(({ metadata }) => metadata.name.startsWith('local-'));
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

  it('is that of the context named, also for kubectl, and keeps no key of ours', async () => {
    const state = join(folder, 'state');
    const own = join(state, 'kubeconfig');
    const original = variant('contexts', (text) =>
      text.replace(/"current-context": "[^"]+"/, '"current-context": "away"'),
    );
    const [, name = ''] = /"current-context": "([^"]+)"/.exec(readFileSync(kubeconfig, 'utf8')) ?? [];
    const ending = new AbortController();
    let seen: { env: string; mode: number; keys: (string | undefined)[]; kubectl: string } | undefined;
    const look = async () => {
      const env = readFileSync(join(state, 'local.env'), 'utf8');
      const keys = (await localKeys()).map(({ spec }) => spec.expiresAt);
      const script = `. '${state}/local.env'; export KUBECONFIG PATH; PATH="$PATH:${programs ?? ''}"; kubectl config current-context && kubectl get namespace ${namespace} -o name`;
      const { stdout, stderr } = await run('sh', ['-c', script]);
      seen = { env, keys, mode: statSync(own).mode & 0o777, kubectl: stdout + stderr };
    };
    const before = await localKeys();
    await supervise({
      state,
      cache: cacheFolder(process.env),
      given: true,
      built: false,
      dra: false,
      kubeconfig: original,
      context: name,
      yes: false,
      interactive: false,
      tidy: false,
      otherMakers: false,
      total: 4,
      progress: { step: () => undefined, line: (text) => expect.unreachable(text), end: () => undefined },
      server: { httpPort: undefined, sshPort: undefined },
      signal: ending.signal,
      onReady: () => void look().finally(() => ending.abort()),
    });
    expect(seen).toMatchObject({ mode: 0o600, kubectl: `${name}\nnamespace/${namespace}\n` });
    expect(seen?.env).toContain(`KUBECONFIG='${own}:${original}'\n`);
    const ends = seen?.keys.map((time) => Date.parse(time ?? '') - Date.now()) ?? [];
    expect(ends).toEqual([expect.closeTo(30 * 24 * 3_600_000, -6)]);
    expect(await localKeys()).toEqual(before);
    expect(existsSync(own)).toBe(false);
  });
});
