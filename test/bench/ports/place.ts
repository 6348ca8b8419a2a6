import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createKey } from '../../../src/access/create-key.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import { NAMESPACES, PODS } from '../../../src/kube/types.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import type { LocalCluster } from '../../../tools/cluster/local-cluster.ts';
import { startBerth } from '../../support/berth-process.ts';
import { importJupyterImage, JUPYTER } from '../../support/ssh-images.ts';
import { waitFor } from '../../support/wait-for.ts';
import { compileBerth } from '../compiled.ts';

const NAMESPACE = 'bench';
const NAME = 'lab';
/** Of server.py. */
const PORT = 7000;
const RELAY = new URL('./relay.ts', import.meta.url).pathname;
const SERVER = readFileSync(new URL('./server.py', import.meta.url), 'utf8');

/** A way to the server in the instance. */
export interface Way {
  /** Without a slash at the end. */
  url: string;
  /** What each request has to have. */
  headers: Record<string, string>;
}

export interface Place extends AsyncDisposable {
  berth: Way;
  /** To the address of the pod, through a program that passes bytes on and does nothing else. */
  relay: Way;
  /** To the address of the pod. */
  direct: Way;
}

/** Returns the address of the pod, once Jupyter answers there. Its image has what the server is written with. */
async function createLab(client: KubeClient): Promise<string> {
  const ref = { namespace: NAMESPACE, name: NAME };
  const onStart = `python3 -c '${SERVER.replaceAll("'", String.raw`'\''`)}'`;
  const gpu = { product: 'NVIDIA-L4', count: 1 };
  const spec = { gpu, runtype: 'jupyter', image: JUPYTER, ports: [{ containerPort: PORT }], onStart };
  await client.create(GPU_INSTANCES, { metadata: ref, spec } as never);
  await waitFor(
    'Jupyter',
    async () => {
      const { status } = await client.get(GPU_INSTANCES, ref);
      return findCondition(status?.conditions, 'Jupyter')?.reason === 'Answers';
    },
    120_000,
  );
  const pod = await client.get(PODS, { namespace: NAMESPACE, name: `${NAME}-1` });
  return pod.status?.podIP ?? '';
}

/** Rents an instance on the real node through all of Berth in one process, as `npm start` runs it. */
export async function makePlace(kubeconfig: string, { client, initPid, programs }: LocalCluster): Promise<Place> {
  if (initPid === undefined || programs === undefined) throw new Error('The benchmark needs the real node.');
  await importJupyterImage({ initPid, programs });
  await client.create(NAMESPACES, { metadata: { name: NAMESPACE } });
  const berth = await startBerth(kubeconfig, 'all', 'default', { program: [compileBerth()], isUnread: true });
  const { token } = await createKey(client, { namespace: NAMESPACE });
  const address = await createLab(client);
  const relay = spawn(process.execPath, [RELAY, address, String(PORT)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [relayPort] = (await once(relay.stdout, 'data')) as [Buffer];
  return {
    berth: {
      url: `${berth.url}/api/v1/instances/${NAME}/proxy/${PORT}`,
      headers: { authorization: `Bearer ${token}` },
    },
    relay: { url: `http://127.0.0.1:${String(relayPort).trim()}`, headers: {} },
    direct: { url: `http://${address}:${PORT}`, headers: {} },
    [Symbol.asyncDispose]: async () => {
      relay.kill();
      await berth[Symbol.asyncDispose]();
    },
  };
}
