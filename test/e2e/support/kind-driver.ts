import { createReadStream } from 'node:fs';
import { importArchive } from '../../../tools/lib/images/image.ts';
import { ask, type Engine, findEngine } from '../../../tools/cluster/kind/engine.ts';
import { createKind, deleteKind } from '../../../tools/cluster/kind/kind-cluster.ts';
import { addRoutes, removeRoutes } from '../../../tools/cluster/kind/routes.ts';
import { findProgram } from '../../../tools/lib/shell.ts';
import type { Driver, DriverOptions, E2eCluster } from './driver.ts';

/**
 * Finds the engine that makes kind's node. Throws where none answers, and where this user may not enter the namespaces of
 * the node: minutes of building would be in vain.
 */
export async function findKindDriver(): Promise<Driver> {
  const engine = await findEngine();
  if (engine === undefined) throw new Error('Neither Docker nor Podman answers.');
  if (process.getuid?.() !== 0) throw new Error('The end-to-end test kills processes of the node: run it as root.');
  return (options) => startKind(engine, options);
}

/** A kind cluster, with routes by which the tests reach its Services. */
async function startKind(engine: Engine, { state, signal }: DriverOptions): Promise<E2eCluster> {
  await using stack = new AsyncDisposableStack();
  stack.defer(async () => void (await deleteKind(state)));
  const { kubeconfig, client, node, network, auditLog } = await createKind({ state, engine, audit: true, signal });
  stack.defer(() => client.close());
  const routes = await addRoutes(engine, node.node, network);
  stack.defer(() => removeRoutes(routes));
  const format = '{{.State.Pid}} {{range .NetworkSettings.Networks}}{{.Gateway}} {{end}}';
  const [initPid, hostAddress = ''] = (await ask(engine, 'inspect', '--format', format, node.node)).split(' ');
  const kubectl = await findProgram('kubectl');
  if (kubectl === undefined) throw new Error('The end-to-end test needs kubectl.');
  const started = stack.move();
  return {
    kubeconfig,
    client,
    loadImage: (archive) => importArchive(node, createReadStream(archive), archive),
    kubectl,
    auditLog,
    initPid: Number(initPid),
    hostAddress,
    stop: () => started.disposeAsync(),
  };
}
