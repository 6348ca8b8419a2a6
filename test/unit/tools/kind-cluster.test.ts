import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { REAL_GPU } from '../../../tools/cluster/built/real-node.ts';
import { gpuLabels, gpuResources } from '../../../tools/cluster/fleet/labels.ts';
import { kindConfig, kubeadmPatches } from '../../../tools/cluster/kind/config.ts';
import { createKind, deleteKind, kindName } from '../../../tools/cluster/kind/kind-cluster.ts';
import { clearLeftovers } from '../../../tools/cluster/supervisor/leftovers.ts';
import { identify } from '../../../tools/lib/process-identity.ts';
import { findKindDriver } from '../../e2e/support/kind-driver.ts';
import { gpuNode, inventoryOf } from '../../support/inventory-world.ts';

const signal = new AbortController().signal;

interface Patch {
  kind: string;
  apiVersion?: string;
  scheduler?: { extraArgs: object };
  apiServer?: { extraArgs: object };
}

interface Requesting {
  containers: { name: string; resources: { requests: Record<string, string> } }[];
}

function requesting(name: string, cpu: string): Requesting {
  return { containers: [{ name, resources: { requests: { cpu } } }] };
}

/**
 * What the pods of kind's node ask for where nothing is patched: kubeadm (phases/controlplane and phases/etcd), its two
 * CoreDNS, and kindnet (kind, pkg/build/nodeimage/const_cni.go).
 */
const SYSTEM_PODS = {
  etcd: '100m',
  'kube-apiserver': '250m',
  'kube-controller-manager': '200m',
  'kube-scheduler': '100m',
  coredns: '200m',
  kindnet: '100m',
};

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

  it('gives kubeadm its patches', () => {
    expect(patches(config)).toContainEqual({
      kind: 'InitConfiguration',
      patches: { directory: '/var/lib/berth/patches' },
    });
    expect(kindConfig(config)).toMatchObject({
      nodes: [{ extraMounts: [{ hostPath: '/state/kind', containerPath: '/var/lib/berth' }] }],
    });
  });

  it('leaves room for both GPUs of the node on a machine of two cores', () => {
    const pods = Object.entries(SYSTEM_PODS).map(([name, cpu]) => {
      const patch = kubeadmPatches()[`${name}+strategic.yaml`];
      const { containers } = patch === undefined ? requesting(name, cpu) : (parse(patch) as { spec: Requesting }).spec;
      expect(containers.map((container) => container.name)).toEqual([name]);
      return { metadata: { name, namespace: 'kube-system' }, spec: { containers, nodeName: 'kind' } };
    });
    const { 'nvidia.com/gpu': gpus = '' } = gpuResources(REAL_GPU);
    const allocatable = { cpu: '2', memory: '8Gi', pods: '110', 'nvidia.com/gpu': gpus };
    const node = gpuNode('kind', { labels: gpuLabels(REAL_GPU), allocatable });
    const { inventory } = inventoryOf({ nodes: [node], pods });
    const single = inventory.offers().find(({ gpuCount }) => gpuCount === 1);
    expect(single).toMatchObject({ product: 'NVIDIA-L4', available: 2 });
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

  it('come with a kubeconfig of their own, and change none of the user', async () => {
    program('kind', `echo "$KUBECONFIG $@" >> ${join(state, 'asked')}; exit 1`);
    vi.stubEnv('KUBECONFIG', join(state, 'of-the-user'));
    writeFileSync(join(state, 'of-the-user'), 'mine');
    await expect(createKind({ state, engine: 'podman', audit: false, signal })).rejects.toThrow(
      'kind could not create',
    );
    const asked = readFileSync(join(state, 'asked'), 'utf8').trim().split('\n');
    expect(asked).toEqual([expect.stringContaining(` create cluster --name ${kindName(state)} `)]);
    expect(asked[0]).toContain(` --kubeconfig ${join(state, 'kubeconfig')} `);
    expect(readFileSync(join(state, 'of-the-user'), 'utf8')).toBe('mine');
  });

  it('are replaced when a run before left them', async () => {
    writeFileSync(containers(), 'abc\n');
    engine('podman', `rm ${containers()}`);
    // kind refuses a name that is taken.
    program('kind', `test ! -e ${containers()} || echo ERROR: taken >&2; echo ERROR: the next thing >&2; exit 1`);
    const creating = createKind({ state, engine: 'podman', audit: false, signal });
    await expect(creating).rejects.toMatchObject({ details: ['ERROR: the next thing'] });
  });

  it('are looked for before a release is built for them', async () => {
    await expect(findKindDriver()).rejects.toThrow('Neither Docker nor Podman answers.');
    program('podman', 'exit 0');
    expect(await findKindDriver()).toBeTypeOf('function');
  });

  it('are gone after a failure, which has the last words of kind', async () => {
    engine('podman', `rm ${containers()}`);
    program('kind', `echo abc > ${containers()}; echo ERROR: no space left >&2; exit 1`);
    const creating = createKind({ state, engine: 'podman', audit: false, signal });
    await expect(creating).rejects.toMatchObject({ name: 'LocalFailure', details: ['ERROR: no space left'] });
    expect(existsSync(containers())).toBe(false);
  });
});
