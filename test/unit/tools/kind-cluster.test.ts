import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { kindConfig, kubeadmPatches } from '../../../tools/cluster/kind/config.ts';
import { createKind, deleteKind, kindName } from '../../../tools/cluster/kind/kind-cluster.ts';
import { clearLeftovers } from '../../../tools/cluster/supervisor/leftovers.ts';
import { identify } from '../../../tools/lib/process-identity.ts';

const signal = new AbortController().signal;

interface Patch {
  kind: string;
  apiVersion?: string;
  scheduler?: { extraArgs: object };
  apiServer?: { extraArgs: object };
}

describe('the configuration of kind', () => {
  const config = { folder: '/state/kind', podCidr: '10.253.7.0/24', serviceCidr: '10.252.7.0/24', audit: true };

  function patches(options: Parameters<typeof kindConfig>[0]): Patch[] {
    const { nodes } = kindConfig(options) as { nodes: { kubeadmConfigPatches: string[] }[] };
    return nodes.flatMap((node) => node.kubeadmConfigPatches.map((text) => parse(text) as Patch));
  }

  it('has the arguments as both versions of kubeadm want them', () => {
    const found = new Map(patches(config).map((patch) => [patch.apiVersion, patch]));
    expect(found.get('kubeadm.k8s.io/v1beta3')?.scheduler?.extraArgs).toMatchObject({ 'kube-api-qps': '1000' });
    expect(found.get('kubeadm.k8s.io/v1beta4')?.scheduler?.extraArgs).toContainEqual({
      name: 'kube-api-qps',
      value: '1000',
    });
  });

  it('writes an audit log where a test reads it, and only there', () => {
    expect(JSON.stringify(patches(config))).toContain('audit-log-path');
    expect(JSON.stringify(patches({ ...config, audit: false }))).not.toContain('audit');
  });

  it('leaves the processors of the node to instances', () => {
    expect(Object.keys(kubeadmPatches())).toContain('kube-apiserver+strategic.yaml');
    expect(parse(kubeadmPatches()['etcd+strategic.yaml'] ?? '')).toEqual({
      spec: { containers: [{ name: 'etcd', resources: { requests: { cpu: '10m' } } }] },
    });
  });
});

describe.skipIf(process.platform === 'win32')('the containers of kind', () => {
  let state = '';
  const containers = () => join(state, 'containers');

  /** A program on the PATH that knows its containers from a file. */
  function program(name: string, script: string): void {
    writeFileSync(join(state, 'bin', name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(state, 'bin', name), 0o755);
  }

  function engine(name: string, remove: string): void {
    program(name, `case $1 in ps) cat ${containers()} 2>/dev/null; exit 0 ;; rm) ${remove} ;; esac`);
  }

  beforeEach(() => {
    state = mkdtempSync(join(tmpdir(), 'berth-kind-'));
    mkdirSync(join(state, 'bin'));
    vi.stubEnv('PATH', `${join(state, 'bin')}:/usr/bin:/bin:/usr/sbin:/sbin`);
    for (const name of ['docker', 'podman']) program(name, 'echo no daemon >&2; exit 1');
  });

  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(state, { recursive: true, force: true });
  });

  it('have a name of their own in every checkout', () => {
    expect(kindName(state)).toMatch(/^berth-[0-9a-f]{8}$/);
    expect(kindName('/other/.berth')).not.toBe(kindName(state));
  });

  it('are removed by the engine that has them, without kind', async () => {
    writeFileSync(containers(), 'abc\n');
    engine('podman', `rm ${containers()}`);
    expect(await deleteKind(state, 'podman')).toEqual([]);
    expect(existsSync(containers())).toBe(false);
  });

  it('are said to be left when they stay, or when nobody knows', async () => {
    const self = identify(process.pid);
    if (self === undefined) throw new Error('no identity');
    writeFileSync(containers(), 'abc\n');
    engine('podman', 'exit 1');
    // A supervisor that was killed before it wrote how it makes its cluster.
    expect(await clearLeftovers(state, { supervisor: self, phase: 'starting' })).toEqual(['container abc of podman']);
    const kind = { engine: 'docker', routes: undefined } as const;
    rmSync(containers());
    expect(await clearLeftovers(state, { supervisor: self, phase: 'ready', way: 'kind', kind })).toEqual([
      expect.stringMatching(/^container berth-.*, because docker does not answer$/),
    ]);
  });

  it('are gone after a failure, which has the last words of kind', async () => {
    engine('podman', `rm ${containers()}`);
    program('kind', `echo abc > ${containers()}; echo ERROR: no space left >&2; exit 1`);
    const creating = createKind({ state, engine: 'podman', audit: false, signal });
    await expect(creating).rejects.toMatchObject({ name: 'LocalFailure', details: ['ERROR: no space left'] });
    expect(existsSync(containers())).toBe(false);
  });
});
