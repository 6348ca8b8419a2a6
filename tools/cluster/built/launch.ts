import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Gpu } from '../fleet/labels.ts';
import { LocalFailure } from '../../lib/failure.ts';
import { freePorts } from '../../lib/free-ports.ts';
import type { Layout } from './components.ts';
import { writeConfigFiles } from './config-files.ts';
import { writeCredentials } from './credentials.ts';
import type { Launcher } from './launcher.ts';
import { AddressesTaken, NamespaceLauncher } from './namespace-launcher.ts';
import { chooseSlot, networkOf, type ClusterNetwork } from './network.ts';
import { ProcessLauncher } from './process-launcher.ts';

/** What a built cluster is started with. */
export interface BuiltOptions {
  /** The state folder; `cluster`, `logs` and `kubeconfig` in it are made anew. */
  state: string;
  /** The folder of the built programs. */
  programs: string;
  /** What the real node takes from the host; undefined for simulated nodes alone. */
  node?: { cniFolder: string; busybox: string; gpu?: Gpu; dra?: boolean } | undefined;
  /** Whether the API server writes an audit log. */
  audit?: boolean;
  /** Path of the program that enforces network policies on the real node; undefined where they are not enforced. */
  networkPolicies?: string;
  signal: AbortSignal;
}

export interface Launched {
  launcher: Launcher;
  layout: Layout;
  network: ClusterNetwork | undefined;
  cgroup: string | undefined;
}

/** How often another cluster may take the addresses that were just found free. */
const ATTEMPTS = 5;

/** Prepares files, addresses and a launcher for the components: namespaces for a real node, child processes without. */
export async function launch(options: BuiltOptions, logs: string): Promise<Launched> {
  return options.node === undefined ? onHost(options, logs) : inNamespaces(options, options.node, logs);
}

async function onHost({ state, programs }: BuiltOptions, logs: string): Promise<Launched> {
  const [etcdPort = 0, etcdPeerPort = 0, apiPort = 0] = await freePorts(3);
  const layout: Layout = {
    ...folders(state, programs),
    etcdPort,
    etcdPeerPort,
    apiPort,
    bindAddress: '127.0.0.1',
    serviceCidr: '10.252.0.0/24',
    podCidr: '10.253.0.0/24',
    simulatedCidr: '10.251.0.0/24',
  };
  await prepare(layout, '127.0.0.1');
  writeConfigFiles(layout);
  return { launcher: new ProcessLauncher(logs), layout, network: undefined, cgroup: undefined };
}

async function inNamespaces(
  { state, programs, audit }: BuiltOptions,
  { cniFolder, dra }: NonNullable<BuiltOptions['node']>,
  logs: string,
): Promise<Launched> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const slot = await chooseSlot(state, attempt);
    const network = networkOf(slot);
    const cgroup = `/${network.link}`;
    const layout: Layout = {
      ...folders(state, programs),
      etcdPort: 2379,
      etcdPeerPort: 2380,
      apiPort: 6443,
      bindAddress: '0.0.0.0',
      advertiseAddress: network.nodeAddress,
      serviceCidr: network.serviceCidr,
      podCidr: network.podCidr,
      simulatedCidr: network.simulatedCidr,
      audit,
      dra,
    };
    await prepare(layout, network.nodeAddress);
    writeConfigFiles(layout, { cgroup, cniFolder });
    try {
      const launcher = await NamespaceLauncher.open({ network, cgroup, programs, data: layout.data, logs });
      return { launcher, layout, network, cgroup };
    } catch (error) {
      if (!(error instanceof AddressesTaken)) throw error;
    }
  }
  throw new LocalFailure(
    'Other clusters that start at the same time take every free address range.',
    'Start again in a moment.',
  );
}

function folders(state: string, programs: string): Pick<Layout, 'programs' | 'credentials' | 'config' | 'data'> {
  const folder = join(state, 'cluster');
  return { programs, credentials: join(folder, 'pki'), config: join(folder, 'config'), data: join(folder, 'data') };
}

async function prepare(layout: Layout, address: string): Promise<void> {
  // The first address of the range is the `kubernetes` Service's.
  const serviceAddress = layout.serviceCidr.replace(/\.\d+\/\d+$/, '.1');
  mkdirSync(layout.data, { recursive: true, mode: 0o700 });
  await writeCredentials({
    folder: layout.credentials,
    server: `https://${address}:${layout.apiPort}`,
    serverHosts: [
      address,
      '127.0.0.1',
      serviceAddress,
      'localhost',
      'kubernetes',
      'kubernetes.default',
      'kubernetes.default.svc',
      'kubernetes.default.svc.cluster.local',
    ],
    nodeAddress: address,
  });
}
