import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { STORAGE_CLASSES } from '../../../src/kube/types.ts';
import { parseManifests } from '../../../tools/cluster/apply.ts';
import { ensurePrograms } from '../../../tools/lib/go/build.ts';
import { type BuiltCluster, startBuiltCluster } from '../../../tools/cluster/built/built-cluster.ts';
import { decideNode } from '../../../tools/cluster/decide-node.ts';
import { importArchive } from '../../../tools/lib/images/image.ts';
import { cacheFolder, ROOT } from '../../../tools/lib/paths.ts';
import { plainProgress } from '../../../tools/lib/progress.ts';
import { ensureGoTools, type GoToolOptions, NETWORK_POLICIES } from '../../../tools/release/go-tools.ts';
import type { Driver, E2eCluster } from './driver.ts';

/** The cluster, with what a test needs to kill its programs. */
export interface BuiltE2eCluster extends E2eCluster, Pick<BuiltCluster, 'startAgain'> {
  /** Folder of the programs that the cluster runs. */
  programs: string;
}

/** The path of the program that enforces network policies. Needs ipset. */
async function networkPolicies(options: Pick<GoToolOptions, 'cache' | 'progress' | 'signal'>): Promise<string> {
  const folder = await ensureGoTools({ ...options, label: 'network', programs: [NETWORK_POLICIES] });
  return join(folder, NETWORK_POLICIES.name);
}

/** The built cluster with its real node. Needs root, and what tools/scripts/needs.ts lists. */
export const builtDriver: Driver<BuiltE2eCluster> = async ({ state, gpu, signal }) => {
  const progress = plainProgress();
  const decision = await decideNode({ yes: false, interactive: false, progress });
  if ('simulated' in decision) throw new Error(`The end-to-end test needs real containers: ${decision.simulated}`);
  const cache = cacheFolder(process.env);
  const programs = await ensurePrograms({ cache, cluster: 'real node', tidy: false, progress, signal });
  const cluster = await startBuiltCluster({
    state,
    programs,
    node: { ...decision.tools, ...(gpu !== undefined && { gpu }) },
    audit: true,
    networkPolicies: await networkPolicies({ cache, progress, signal }),
    signal,
  });
  const { initPid, kubeconfig, client, network } = cluster;
  if (initPid === undefined || network === undefined) throw new Error('The cluster has no real node.');
  const storage = await readFile(join(ROOT, 'deploy/local/manifests/storage-class.yaml'), 'utf8');
  for (const storageClass of parseManifests(storage)) {
    await client.apply(STORAGE_CLASSES, storageClass, { fieldManager: 'berth-e2e' });
  }
  return {
    kubeconfig,
    client,
    loadImage: (archive) => importArchive({ initPid, programs }, createReadStream(archive), archive),
    kubectl: join(programs, 'kubectl'),
    auditLog: cluster.auditLog,
    programs,
    initPid,
    hostAddress: network.hostAddress,
    startAgain: (program) => cluster.startAgain(program),
    stop: () => cluster.stop(),
  };
};
