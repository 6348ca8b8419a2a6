import { createReadStream } from 'node:fs';
import { importArchive } from '../../../tools/lib/images/image.ts';
import { findEngine } from '../../../tools/cluster/kind/engine.ts';
import { createKind, deleteKind } from '../../../tools/cluster/kind/kind-cluster.ts';
import { addRoutes, removeRoutes } from '../../../tools/cluster/kind/routes.ts';
import type { Driver } from './driver.ts';

/** A kind cluster, with routes by which the tests reach its Services. */
export const kindDriver: Driver = async ({ state, signal }) => {
  const engine = await findEngine();
  if (engine === undefined) throw new Error('Neither Docker nor Podman answers.');
  await using stack = new AsyncDisposableStack();
  stack.defer(async () => void (await deleteKind(state)));
  const { kubeconfig, client, node, network, auditLog } = await createKind({ state, engine, audit: true, signal });
  stack.defer(() => client.close());
  const routes = await addRoutes(engine, node.node, network);
  stack.defer(() => removeRoutes(routes));
  const started = stack.move();
  return {
    kubeconfig,
    client,
    loadImage: (archive) => importArchive(node, createReadStream(archive), archive),
    kubectl: 'kubectl',
    auditLog,
    stop: () => started.disposeAsync(),
  };
};
