import { readFile } from 'node:fs/promises';
import { isStatic } from '../lib/images/image.ts';
import { findProgram, isExecutable } from '../lib/shell.ts';

/** What the real node takes from the host. */
export interface NodeTools {
  cniFolder: string;
  busybox: string;
}

/** Whether containers can run here: with these tools, after an installation, or not at all. */
export type NodeSupport =
  | { kind: 'ready'; tools: NodeTools }
  | { kind: 'installable'; missing: string[]; install: string[] }
  | { kind: 'impossible'; reason: string };

const SYSTEM_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/bin', '/bin'];
const CNI_FOLDERS = ['/usr/lib/cni', '/opt/cni/bin', '/usr/libexec/cni'];

/** Programs of the real node that we do not build, and the packages of Debian and Fedora that have them. */
const PACKAGES = {
  runc: { apt: 'runc', dnf: 'runc' },
  'CNI plugins': { apt: 'containernetworking-plugins', dnf: 'containernetworking-plugins' },
  'static busybox': { apt: 'busybox-static', dnf: 'busybox' },
  'static tini': { apt: 'tini', dnf: 'tini-static' },
  iptables: { apt: 'iptables', dnf: 'iptables-nft' },
  ip: { apt: 'iproute2', dnf: 'iproute' },
  nsenter: { apt: 'util-linux', dnf: 'util-linux' },
} as const;

type Requirement = keyof typeof PACKAGES;

/** Looks for everything that the real node needs. */
export async function checkNodeSupport(): Promise<NodeSupport> {
  if (process.platform !== 'linux') return { kind: 'impossible', reason: 'containers need Linux' };
  if (process.getuid?.() !== 0) return { kind: 'impossible', reason: 'containers need root' };
  const missing: Requirement[] = [];
  for (const name of ['runc', 'iptables', 'ip', 'nsenter'] as const) {
    if ((await findProgram(name, SYSTEM_FOLDERS)) === undefined) missing.push(name);
  }
  const cniFolder = await findCni();
  if (cniFolder === undefined) missing.push('CNI plugins');
  const busybox = await findStaticBusybox();
  if (busybox === undefined) missing.push('static busybox');
  if ((await findProgram('tini-static', SYSTEM_FOLDERS)) === undefined) missing.push('static tini');
  if (missing.length === 0 && cniFolder !== undefined && busybox !== undefined) {
    return { kind: 'ready', tools: { cniFolder, busybox } };
  }
  const install = await installCommand(missing);
  if (install === undefined) return { kind: 'impossible', reason: `missing on this host: ${missing.join(', ')}` };
  return { kind: 'installable', missing, install };
}

async function findCni(): Promise<string | undefined> {
  for (const folder of CNI_FOLDERS) {
    if ((await isExecutable(`${folder}/bridge`)) && (await isExecutable(`${folder}/portmap`))) return folder;
  }
  return undefined;
}

async function findStaticBusybox(): Promise<string | undefined> {
  const path = await findProgram('busybox', SYSTEM_FOLDERS);
  return path !== undefined && isStatic(await readFile(path)) ? path : undefined;
}

async function installCommand(missing: readonly Requirement[]): Promise<string[] | undefined> {
  const apt = await findProgram('apt-get', SYSTEM_FOLDERS);
  if (apt !== undefined) {
    return ['apt-get', 'install', '-y', '--no-install-recommends', ...missing.map((name) => PACKAGES[name].apt)];
  }
  const dnf = await findProgram('dnf', SYSTEM_FOLDERS);
  return dnf === undefined ? undefined : ['dnf', 'install', '-y', ...missing.map((name) => PACKAGES[name].dnf)];
}
