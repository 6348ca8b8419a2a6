import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { LocalFailure } from '../../lib/failure.ts';
import { freePorts } from '../../lib/free-ports.ts';
import type { BuiltOptions } from './options.ts';
import type { Layout } from './components.ts';
import { writeConfigFiles } from './config-files.ts';
import { writeCredentials } from './credentials.ts';
import type { Launcher } from './launcher.ts';
import { AddressesTaken, launchNamespaces } from './namespace-launcher.ts';
import { chooseSlot, networkOf, type ClusterNetwork } from './network.ts';
import { launchProcesses } from './process-launcher.ts';

export interface Launched {
  launcher: Launcher;
  layout: Layout;
  network: ClusterNetwork | undefined;
  cgroup: string | undefined;
}

/** How often another cluster may snatch the addresses we chose before we give up. */
const ATTEMPTS = 5;

/** Makes the place for the components: namespaces of their own with a real node, child processes without. */
export async function launch(options: BuiltOptions, logs: string): Promise<Launched> {
  return options.node === undefined ? onHost(options, logs) : inNamespaces(options, options.node.cniFolder, logs);
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
  prepare(layout, '127.0.0.1');
  writeConfigFiles(layout);
  return { launcher: launchProcesses(logs), layout, network: undefined, cgroup: undefined };
}

async function inNamespaces(
  { state, programs, audit }: BuiltOptions,
  cniFolder: string,
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
    };
    prepare(layout, network.nodeAddress);
    writeConfigFiles(layout, { cgroup, cniFolder });
    try {
      const launcher = await launchNamespaces({ network, cgroup, programs, data: layout.data, logs });
      return { launcher, layout, network, cgroup };
    } catch (error) {
      if (!(error instanceof AddressesTaken)) throw error;
    }
  }
  throw new LocalFailure('Other clusters keep taking the addresses of this one.', 'Start again in a moment.');
}

function folders(state: string, programs: string): Pick<Layout, 'programs' | 'credentials' | 'config' | 'data'> {
  const folder = join(state, 'cluster');
  return { programs, credentials: join(folder, 'pki'), config: join(folder, 'config'), data: join(folder, 'data') };
}

function prepare(layout: Layout, address: string): void {
  // The first address of the range is the `kubernetes` Service's.
  const serviceAddress = layout.serviceCidr.replace(/\.\d+\/\d+$/, '.1');
  mkdirSync(layout.data, { recursive: true, mode: 0o700 });
  writeCredentials({
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
