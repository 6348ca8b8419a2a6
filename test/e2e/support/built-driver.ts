import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { STORAGE_CLASSES } from '../../../src/kube/types.ts';
import { parseManifests } from '../../../src/local/apply.ts';
import { ensurePrograms } from '../../../src/local/build/build.ts';
import { startBuiltCluster } from '../../../src/local/cluster/built-cluster.ts';
import { decideNode } from '../../../src/local/host.ts';
import { importArchive } from '../../../src/local/image.ts';
import { cacheFolder, ROOT } from '../../../src/local/paths.ts';
import { createProgress } from '../../../src/local/progress.ts';
import type { Driver } from './driver.ts';

/** The cluster that we build ourselves, with its real node. Needs root, and what `npm start` needs. */
export const builtDriver: Driver = async ({ state, signal }) => {
  const { stderr } = process;
  const progress = createProgress({ write: (text) => stderr.write(text), isTty: false, columns: 80 });
  const decision = await decideNode({ yes: true, interactive: false, progress });
  if ('simulated' in decision) throw new Error(`The end-to-end test needs real containers: ${decision.simulated}`);
  const cache = cacheFolder(process.env);
  const programs = await ensurePrograms({ cache, realNode: true, tidy: false, progress, signal });
  const cluster = await startBuiltCluster({ state, programs, node: decision.tools, audit: true, signal });
  const { initPid, kubeconfig, client } = cluster;
  if (initPid === undefined) throw new Error('The cluster has no real node.');
  const storage = await readFile(join(ROOT, 'deploy/local/manifests/storage-class.yaml'), 'utf8');
  for (const storageClass of parseManifests(storage)) {
    await client.apply(STORAGE_CLASSES, storageClass, { fieldManager: 'berth-e2e' });
  }
  return {
    kubeconfig,
    client,
    loadImage: (archive) => importArchive({ initPid, programs }, createReadStream(archive), archive),
    auditLog: cluster.auditLog,
    stop: () => cluster.stop(),
  };
};
