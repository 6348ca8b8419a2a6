import { join } from 'node:path';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { findObject } from '../../../src/kube/client/find-object.ts';
import { RESOURCE_SLICES } from '../../../src/kube/devices.ts';
import { NODES, type Node } from '../../../src/kube/types.ts';
import { LocalFailure } from '../../lib/failure.ts';
import { type Gpu, gpuLabels, gpuResources } from '../fleet/labels.ts';
import { busyboxLayer, importImage, type ImageSpec } from '../../lib/images/image.ts';
import { run } from '../../lib/shell.ts';
import { waitFor } from '../../lib/wait.ts';
import * as components from './components.ts';
import { CONTAINERD_SOCKET } from '../../lib/images/image.ts';
import { PAUSE_IMAGE } from './config-files.ts';
import type { Launcher } from './launcher.ts';

export const REAL_NODE = 'real-0';

/** The small image with a shell that tests and the tour run on the real node. */
export const BUSYBOX_IMAGE = 'localhost/berth-busybox:1';

export async function smallImage(busybox: string): Promise<ImageSpec> {
  return { reference: BUSYBOX_IMAGE, layer: await busyboxLayer(busybox), cmd: ['/bin/sh'] };
}

/** The GPUs of the real node, which no machine has. */
export const REAL_GPU: Gpu = { product: 'NVIDIA-L4', memory: 23_034, family: 'ada-lovelace', compute: '8.9', count: 2 };

export interface RealNodeOptions {
  launcher: Launcher;
  layout: components.Layout;
  client: KubeClient;
  initPid: number;
  busybox: string;
  gpu: Gpu;
  signal: AbortSignal;
}

/** Milliseconds for containerd to answer, and for the node to register and become Ready. */
const NODE_TIMEOUT = 90_000;

/** Starts kubelet, kube-proxy and what gives the GPUs, imports the images, labels the node; resolves when it is Ready. */
export async function joinRealNode({
  launcher,
  layout,
  client,
  initPid,
  busybox,
  gpu,
  signal,
}: RealNodeOptions): Promise<void> {
  const access = { initPid, programs: layout.programs };
  const limits = { timeout: NODE_TIMEOUT, interval: 100, signal };
  launcher.start(components.kubelet(layout));
  launcher.start(components.gpuGiver(layout, gpu));
  launcher.start(components.kubeProxy(layout));
  if ((await waitFor(() => containerdAnswers(access), limits)) === undefined)
    throw slow('containerd', 'containerd.log');
  const layer = await busyboxLayer(busybox);
  await importImage(access, { reference: PAUSE_IMAGE, layer, entrypoint: ['/bin/sleep', '2147483647'] });
  await importImage(access, await smallImage(busybox));
  if ((await waitFor(() => findObject(client, NODES, { name: REAL_NODE }), limits)) === undefined)
    throw slow('kubelet', 'kubelet.log');
  if (layout.dra !== true) await labelGpus(client, REAL_NODE, gpu);
  const isReady = async () => {
    const node = await findObject(client, NODES, { name: REAL_NODE });
    return isUsable(node) && (layout.dra === true ? hasSlice(client) : hasGpus(node, gpu));
  };
  if ((await waitFor(isReady, limits)) === undefined) throw slow('kubelet', 'kubelet.log');
}

/** Gives a node the labels that GPU Feature Discovery would write. */
export async function labelGpus(client: KubeClient, name: string, gpu: Gpu): Promise<void> {
  await client.patch(NODES, { name }, { metadata: { labels: gpuLabels(gpu) } }, { type: 'merge' });
}

/**
 * Gives a node of kind the labels and resources that GPU Feature Discovery and the device plugin would write. The kubelet
 * leaves resources alone that it does not know.
 */
export async function giveGpus(client: KubeClient, name: string): Promise<void> {
  await labelGpus(client, name, REAL_GPU);
  const resources = gpuResources(REAL_GPU);
  const status = { capacity: resources, allocatable: resources };
  await client.patch(NODES, { name }, { status }, { type: 'strategic', subresource: 'status' });
}

async function containerdAnswers({ initPid, programs }: { initPid: number; programs: string }): Promise<boolean> {
  const inside = ['--target', String(initPid), '--mount', '--net', join(programs, 'ctr')];
  return (await run('nsenter', [...inside, '-a', CONTAINERD_SOCKET, 'version'])).code === 0;
}

function isUsable(node: Node | undefined): boolean {
  const ready = node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
  const tainted = node?.spec?.taints?.some(({ key }) => key === 'node.kubernetes.io/not-ready') ?? false;
  return ready && !tainted;
}

function hasGpus(node: Node | undefined, gpu: Gpu): boolean {
  const { 'nvidia.com/gpu': whole } = gpuResources(gpu);
  return node?.status?.allocatable?.['nvidia.com/gpu'] === whole;
}

/** Whether the DRA driver has told of the GPUs, which it does once the kubelet knows it. */
async function hasSlice(client: KubeClient): Promise<boolean> {
  return (await client.list(RESOURCE_SLICES)).items.some(({ spec }) => spec.nodeName === REAL_NODE);
}

function slow(program: string, log: string): LocalFailure {
  const seconds = NODE_TIMEOUT / 1000;
  return new LocalFailure(`The real node was not ready in ${seconds} s (${program}).`, `Read .berth/logs/${log}.`);
}
