import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LocalFailure } from '../failure.ts';
import { ROOT } from '../paths.ts';

/** A module whose program is in this checkout: it gives the GPUs of the real node to the kubelet. */
type OwnModule = 'device-plugin' | 'dra-driver';

type Module = 'kubernetes' | `kubernetes-1.${number}` | 'containerd' | OwnModule;

/** One program to build from a locked Go module under deploy/local. */
export interface Program {
  name: string;
  /** Folder under deploy/local with the go.mod and go.sum that lock it. */
  module: Module;
  package: string;
  /** Seconds that its build takes on two cores, in the order of the list: later ones reuse what earlier ones built. */
  seconds: number;
}

function controlPlane(): Program[] {
  return [
    kubernetes('kube-apiserver', 332),
    kubernetes('kube-controller-manager', 82),
    kubernetes('kube-scheduler', 7),
    kubernetes('kubectl', 32),
    { name: 'etcd', module: 'kubernetes', package: 'go.etcd.io/etcd/server/v3', seconds: 15 },
    { name: 'kwok', module: 'kubernetes', package: 'sigs.k8s.io/kwok/cmd/kwok', seconds: 13 },
  ];
}

function realNode(): Program[] {
  return [
    kubernetes('kubelet', 31),
    kubernetes('kube-proxy', 14),
    containerd('containerd', 60),
    containerd('containerd-shim-runc-v2', 20),
    containerd('ctr', 17),
  ];
}

function kubernetes(name: string, seconds: number): Program {
  return { name, module: kubernetesModule(), package: `k8s.io/kubernetes/cmd/${name}`, seconds };
}

/**
 * The module that locks Kubernetes itself. BERTH_KUBERNETES names another minor version than the usual one, such as 1.35.
 * Throws LocalFailure for one that no module locks.
 */
function kubernetesModule(): Module {
  const wanted = process.env['BERTH_KUBERNETES'];
  const usual = minorOf('kubernetes');
  if (wanted === undefined || wanted === usual) return 'kubernetes';
  const others = readdirSync(join(ROOT, 'deploy/local')).flatMap((name) => /^kubernetes-(.+)$/.exec(name)?.[1] ?? []);
  if (!others.includes(wanted)) {
    const versions = [usual, ...others].toSorted().join(', ');
    throw new LocalFailure(`BERTH_KUBERNETES is ${wanted}, which cannot be built.`, `Set one of ${versions}.`);
  }
  return `kubernetes-${wanted}` as Module;
}

function minorOf(module: Module): string {
  return lockedVersion(module, 'k8s.io/kubernetes').split('.').slice(0, 2).join('.');
}

function containerd(name: string, seconds: number): Program {
  return { name, module: 'containerd', package: `github.com/containerd/containerd/v2/cmd/${name}`, seconds };
}

/** The programs that a cluster runs of its own: kwok with kind, a control plane, or a real node too, also one with DRA. */
export type ClusterPrograms = 'with kind' | 'simulated' | 'real node' | 'real node with DRA';

/** The programs of a cluster, in build order. */
export function programsFor(cluster: ClusterPrograms): Program[] {
  if (cluster === 'with kind') return controlPlane().filter(({ name }) => name === 'kwok');
  if (cluster === 'simulated') return controlPlane();
  const last = cluster === 'real node' ? own('device-plugin', 10) : own('dra-driver', 45);
  return [...controlPlane(), ...realNode(), last];
}

function own(module: OwnModule, seconds: number): Program {
  return { name: ownProgram(module), module, package: '.', seconds };
}

/**
 * The name of an own program among the others. Its source is in this checkout, and the name changes with it, so that a
 * change of the source builds nothing else anew.
 */
export function ownProgram(module: OwnModule): string {
  const hash = createHash('sha256');
  const files = readdirSync(moduleFolder(module)).toSorted();
  for (const file of files) hash.update(moduleFile(module, file));
  return `${module}-${hash.digest('hex').slice(0, 12)}`;
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

/** Flags of the linker that give programs of Kubernetes their version. */
export function versionFlags(version: string): string {
  const [major = '', minor = ''] = version.split('.');
  const values = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor };
  return Object.entries(values)
    .map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
    .join(' ');
}

/** The version of Kubernetes that is built, without the `v`. */
export function kubernetesVersion(): string {
  return lockedVersion(kubernetesModule(), 'k8s.io/kubernetes');
}

/** The kwok version that deploy/local/kubernetes/go.mod locks, without the `v`. */
export function kwokVersion(): string {
  return lockedVersion('kubernetes', 'sigs.k8s.io/kwok');
}

/** The version of a module that a go.mod locks, without the `v`. */
export function lockedVersion(folder: Module, module: string): string {
  const words = moduleFile(folder, 'go.mod')
    .split('\n')
    .map((line) => line.trim().split(' '));
  const version = words.find(([name, value]) => name === module && value?.startsWith('v'))?.[1];
  if (version === undefined) throw new Error(`deploy/local/${folder}/go.mod names no version of ${module}.`);
  return version.slice(1);
}

/** The folder of the go.mod that locks the version of Kubernetes that is built. */
export function kubernetesFolder(): string {
  return moduleFolder(kubernetesModule());
}

export function moduleFolder(module: Module): string {
  return join(ROOT, 'deploy/local', module);
}

function moduleFile(module: Module, file: string): string {
  return readFileSync(join(moduleFolder(module), file), 'utf8');
}

/**
 * Part of the name of the folder of finished programs. It changes with every locked module of others and every build
 * argument, so that two checkouts of different age can share a cache.
 */
export function versionHash(platform: string): string {
  const hash = createHash('sha256').update(platform);
  for (const module of new Set<Module>(['kubernetes', 'containerd', kubernetesModule()])) {
    hash.update(moduleFile(module, 'go.mod')).update(moduleFile(module, 'go.sum'));
  }
  for (const program of [...controlPlane(), ...realNode()]) hash.update(buildArguments(program, '').join('\0'));
  return `${kubernetesVersion()}-${hash.digest('hex').slice(0, 12)}`;
}
