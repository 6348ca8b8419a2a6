import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../paths.ts';

/** One program to build from a locked Go module under deploy/local. */
export interface Program {
  name: string;
  /** Folder under deploy/local with the go.mod and go.sum that lock it. */
  module: 'kubernetes' | 'containerd' | 'device-plugin';
  package: string;
  /** Seconds that its build takes on two cores, in the order of the list: later ones reuse what earlier ones built. */
  seconds: number;
}

const CONTROL_PLANE = [
  kubernetes('kube-apiserver', 332),
  kubernetes('kube-controller-manager', 82),
  kubernetes('kube-scheduler', 7),
  kubernetes('kubectl', 32),
  { name: 'etcd', module: 'kubernetes', package: 'go.etcd.io/etcd/server/v3', seconds: 15 },
  { name: 'kwok', module: 'kubernetes', package: 'sigs.k8s.io/kwok/cmd/kwok', seconds: 13 },
] satisfies Program[];

const REAL_NODE = [
  kubernetes('kubelet', 31),
  kubernetes('kube-proxy', 14),
  containerd('containerd', 60),
  containerd('containerd-shim-runc-v2', 20),
  containerd('ctr', 17),
] satisfies Program[];

function kubernetes(name: string, seconds: number): Program {
  return { name, module: 'kubernetes', package: `k8s.io/kubernetes/cmd/${name}`, seconds };
}

function containerd(name: string, seconds: number): Program {
  return { name, module: 'containerd', package: `github.com/containerd/containerd/v2/cmd/${name}`, seconds };
}

/** The programs of a cluster, in build order. */
export function programsFor(cluster: { realNode: boolean }): Program[] {
  if (!cluster.realNode) return CONTROL_PLANE;
  return [...CONTROL_PLANE, ...REAL_NODE, { name: devicePlugin(), module: 'device-plugin', package: '.', seconds: 10 }];
}

/**
 * The name of the device plugin among the programs. Its source is in this checkout, and the name changes with it, so
 * that a change of the source builds nothing else anew.
 */
export function devicePlugin(): string {
  const hash = createHash('sha256');
  const files = readdirSync(moduleFolder('device-plugin')).toSorted();
  for (const file of files) hash.update(moduleFile('device-plugin', file));
  return `device-plugin-${hash.digest('hex').slice(0, 12)}`;
}

/** The file with kwok's stages, which make its nodes and pods move; kwok without stages does nothing. */
export const KWOK_STAGES = 'kwok-stages.yaml';

/** The folders of the kwok module whose stages are used. */
export const KWOK_STAGE_FOLDERS = ['node/fast', 'node/heartbeat-with-lease', 'pod/fast'];

/** Arguments of `go build` for one program. The flags give the programs of Kubernetes their version. */
export function buildArguments(program: Program, output: string): string[] {
  const tags = program.module === 'containerd' ? ['-tags', 'no_btrfs no_devmapper no_zfs no_aufs'] : [];
  const stamped = program.package.startsWith('k8s.io/kubernetes/');
  const flags = stamped ? `-s -w ${versionFlags(kubernetesVersion())}` : '-s -w';
  return ['build', '-buildvcs=false', '-trimpath', '-ldflags', flags, ...tags, '-o', output, program.package];
}

function versionFlags(version: string): string {
  const [major = '', minor = ''] = version.split('.');
  const values = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor };
  return Object.entries(values)
    .map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
    .join(' ');
}

/** The Kubernetes version that deploy/local/kubernetes/go.mod locks, without the `v`. */
export function kubernetesVersion(): string {
  return lockedVersion('k8s.io/kubernetes');
}

/** The kwok version that deploy/local/kubernetes/go.mod locks, without the `v`. */
export function kwokVersion(): string {
  return lockedVersion('sigs.k8s.io/kwok');
}

function lockedVersion(module: string): string {
  const words = moduleFile('kubernetes', 'go.mod')
    .split('\n')
    .map((line) => line.trim().split(' '));
  const version = words.find(([name, value]) => name === module && value?.startsWith('v'))?.[1];
  if (version === undefined) throw new Error(`deploy/local/kubernetes/go.mod names no version of ${module}.`);
  return version.slice(1);
}

export function moduleFolder(module: Program['module']): string {
  return join(ROOT, 'deploy/local', module);
}

function moduleFile(module: Program['module'], file: string): string {
  return readFileSync(join(moduleFolder(module), file), 'utf8');
}

/**
 * Part of the name of the folder of finished programs. It changes with every locked module of others and every build
 * argument, so that two checkouts of different age can share a cache.
 */
export function versionHash(platform: string): string {
  const hash = createHash('sha256').update(platform);
  for (const module of ['kubernetes', 'containerd'] as const) {
    hash.update(moduleFile(module, 'go.mod')).update(moduleFile(module, 'go.sum'));
  }
  for (const program of [...CONTROL_PLANE, ...REAL_NODE]) hash.update(buildArguments(program, '').join('\0'));
  return `${kubernetesVersion()}-${hash.digest('hex').slice(0, 12)}`;
}
