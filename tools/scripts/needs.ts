import { INSTALL_GO } from '../lib/go/find.ts';
import { REAL_NODE_PACKAGES, type RequirementName } from '../lib/host/requirements.ts';

/** What one npm script needs of this machine, besides Node and the npm packages. */
export interface ScriptNeeds {
  packages: readonly RequirementName[];
  /** Programs that a person installs. */
  programs?: readonly Program[];
  /** Without the packages it skips the tests that need them. */
  skips?: true;
  /** It uses any of the ways to a Kubernetes cluster. */
  cluster?: true;
  /** It runs containers on a node of its own. */
  realNode?: true;
}

/** A program that no package of the system brings in the version that is needed. */
export interface Program {
  name: 'go' | 'apt-get' | 'kind' | 'kubectl';
  /** What it is for, as the rest of a sentence that begins with its name. */
  use: string;
  /** How to get it. */
  remedy: string;
}

const GO: Program = { name: 'go', use: 'builds the programs that are written in Go', remedy: INSTALL_GO };
const APT: Program = {
  name: 'apt-get',
  use: 'brings the libraries of the image',
  remedy: 'Use Debian or Ubuntu; elsewhere `docker build -f deploy/Dockerfile .` builds the image.',
};
const APT_FOR_SSHD: Program = {
  name: 'apt-get',
  use: "brings OpenSSH's server, with which the gateway is compared",
  remedy: 'Use Debian or Ubuntu.',
};
const KIND: Program = {
  name: 'kind',
  use: 'makes the cluster',
  remedy: 'Install kind from https://kind.sigs.k8s.io, and Docker or Podman.',
};
const KUBECTL: Program = {
  name: 'kubectl',
  use: 'talks to the cluster',
  remedy: 'Install kubectl from https://kubernetes.io/docs/tasks/tools.',
};

const IMAGE_PACKAGES = ['static busybox', 'static tini', 'rsync'] as const;
/** What pastes the printed commands into a shell, and installs the model server. */
const CALLER_PACKAGES = ['ssh', 'curl', 'Python venv'] as const;
const RELEASE: ScriptNeeds = {
  packages: [...REAL_NODE_PACKAGES, 'ipset', 'rsync', ...CALLER_PACKAGES],
  programs: [GO, APT],
  realNode: true,
};

/** What the tests of `npm test` use. Where one of these is missing, some tests are skipped. */
export const TEST_PACKAGES = [
  ...REAL_NODE_PACKAGES,
  'mmdebstrap',
  'rsync',
  'chromium',
  'zsh',
  'fish',
  ...CALLER_PACKAGES,
] as const;

/** The scripts of package.json that need something, by their names. */
export const SCRIPT_NEEDS: Readonly<Record<string, ScriptNeeds>> = {
  test: { packages: TEST_PACKAGES, skips: true, cluster: true },
  'test:faults': { packages: [...REAL_NODE_PACKAGES, 'mmdebstrap', 'ssh'], skips: true, cluster: true },
  e2e: RELEASE,
  'e2e:kind': { packages: [...IMAGE_PACKAGES, 'nsenter', ...CALLER_PACKAGES], programs: [GO, APT, KIND, KUBECTL] },
  'test:kind': { packages: ['static busybox', 'static tini', 'ssh', 'curl'], programs: [GO], skips: true },
  'kind:node': { packages: [...REAL_NODE_PACKAGES, 'container engine', 'mmdebstrap'], programs: [GO, APT] },
  chaos: RELEASE,
  'bench:controller': { packages: [], cluster: true },
  'bench:http': { packages: [], cluster: true },
  'bench:shares': { packages: [], cluster: true },
  'bench:flood': { packages: [], cluster: true },
  'bench:gateway': { packages: ['Python venv'], cluster: true },
  'bench:page': { packages: ['chromium'] },
  'bench:ports': { packages: [...REAL_NODE_PACKAGES, 'mmdebstrap'], programs: [GO], realNode: true },
  'bench:ssh': { packages: [...REAL_NODE_PACKAGES, 'ssh', 'rsync'], programs: [GO, APT_FOR_SSHD], realNode: true },
  image: { packages: IMAGE_PACKAGES, programs: [GO, APT] },
  release: { packages: IMAGE_PACKAGES, programs: [GO, APT] },
  'check:chart': { packages: [], programs: [GO] },
  manifests: { packages: [], programs: [GO] },
};
