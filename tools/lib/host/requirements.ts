import { readFile } from 'node:fs/promises';
import { isStatic } from '../images/image.ts';
import { findProgram, isExecutable, run } from '../shell.ts';

/** Something that scripts and tests run, and that a package of the system brings. */
interface Requirement {
  /** What it is for, as the rest of a sentence that begins with its name. */
  use: string;
  /** The packages of Debian and Fedora. */
  apt: string;
  dnf: string;
  isPresent(): Promise<boolean>;
}

const SYSTEM_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/bin', '/bin'];
const CNI_FOLDERS = ['/usr/lib/cni', '/opt/cni/bin', '/usr/libexec/cni'];

const has = (program: string) => async (): Promise<boolean> =>
  (await findProgram(program, SYSTEM_FOLDERS)) !== undefined;

/** Every requirement of this repository, by the name that messages give it. */
const REQUIREMENTS = {
  runc: { use: 'starts containers', apt: 'runc', dnf: 'runc', isPresent: has('runc') },
  'CNI plugins': {
    use: 'connect containers to the network',
    apt: 'containernetworking-plugins',
    dnf: 'containernetworking-plugins',
    isPresent: async () => (await findCniFolder()) !== undefined,
  },
  'static busybox': {
    use: 'is the shell of the images that are made here',
    apt: 'busybox-static',
    dnf: 'busybox',
    isPresent: async () => (await findStaticBusybox()) !== undefined,
  },
  'static tini': {
    use: 'is the first process of an instance',
    apt: 'tini',
    dnf: 'tini-static',
    isPresent: has('tini-static'),
  },
  iptables: { use: "makes the node's Services", apt: 'iptables', dnf: 'iptables-nft', isPresent: has('iptables') },
  ip: { use: 'links the node to this machine', apt: 'iproute2', dnf: 'iproute', isPresent: has('ip') },
  nsenter: {
    use: "runs programs in the node's namespaces",
    apt: 'util-linux',
    dnf: 'util-linux',
    isPresent: has('nsenter'),
  },
  ipset: {
    use: 'holds the addresses that network policies allow',
    apt: 'ipset',
    dnf: 'ipset',
    isPresent: has('ipset'),
  },
  rsync: { use: 'copies files to and from instances', apt: 'rsync', dnf: 'rsync', isPresent: has('rsync') },
  ssh: { use: 'logs in to instances', apt: 'openssh-client', dnf: 'openssh-clients', isPresent: has('ssh') },
  curl: { use: 'calls the HTTP interface as the printed tour does', apt: 'curl', dnf: 'curl', isPresent: has('curl') },
  'container engine': {
    use: 'runs the nodes of kind',
    apt: 'podman',
    dnf: 'podman',
    isPresent: async () => (await has('podman')()) || (await run('docker', ['info'])).code === 0,
  },
  mmdebstrap: {
    use: 'makes the images of full distributions',
    apt: 'mmdebstrap',
    dnf: 'mmdebstrap',
    isPresent: has('mmdebstrap'),
  },
  chromium: { use: 'opens the dashboard', apt: 'chromium', dnf: 'chromium', isPresent: has('chromium') },
  zsh: { use: 'completes the command line', apt: 'zsh', dnf: 'zsh', isPresent: has('zsh') },
  fish: { use: 'completes the command line', apt: 'fish', dnf: 'fish', isPresent: has('fish') },
  'Python venv': {
    use: 'installs llama.cpp, Valkey and schemathesis',
    apt: 'python3-venv',
    dnf: 'python3',
    isPresent: async () => (await run('python3', ['-c', 'import ensurepip, venv'])).code === 0,
  },
} as const satisfies Record<string, Requirement>;

export type RequirementName = keyof typeof REQUIREMENTS;

export const requirementOf = (name: RequirementName): Requirement => REQUIREMENTS[name];

/** What containers on the real node of the local cluster need. */
export const REAL_NODE_PACKAGES = [
  'runc',
  'CNI plugins',
  'static busybox',
  'static tini',
  'iptables',
  'ip',
  'nsenter',
] as const satisfies readonly RequirementName[];

/** The folder of the CNI plugins, or undefined. */
export async function findCniFolder(): Promise<string | undefined> {
  for (const folder of CNI_FOLDERS) {
    if ((await isExecutable(`${folder}/bridge`)) && (await isExecutable(`${folder}/portmap`))) return folder;
  }
  return undefined;
}

/** The path of a busybox that is linked statically, so that it runs in an empty image, or undefined. */
export async function findStaticBusybox(): Promise<string | undefined> {
  const path = await findProgram('busybox', SYSTEM_FOLDERS);
  return path !== undefined && isStatic(await readFile(path)) ? path : undefined;
}
