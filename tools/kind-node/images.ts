import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LocalFailure } from '../lib/failure.ts';
import { kubernetesVersion } from '../lib/go/programs.ts';
import { busyboxLayer, type ImageSpec } from '../lib/images/image.ts';
import { lastLines, run } from '../lib/shell.ts';

export interface ImageSources {
  /** Folder of the programs of Kubernetes. */
  programs: string;
  /** Folder of kubeadm and the provisioner. */
  tools: string;
  /** Path of a busybox that is linked statically. */
  busybox: string;
  /** The root file system of the node as a tar file, with kube-proxy and network-policies at /usr/local/bin. */
  network: string;
}

/** The references that kubeadm wants on a node, by the last word of the name, such as `etcd`. */
export async function wantedImages(tools: string): Promise<ReadonlyMap<string, string>> {
  const args = ['config', 'images', 'list', '--kubernetes-version', `v${kubernetesVersion()}`];
  const { code, stdout, stderr } = await run(join(tools, 'kubeadm'), args);
  if (code !== 0) throw new LocalFailure('kubeadm names no images.', 'Read the lines below.', lastLines(stderr, 5));
  const names = stdout.trim().split('\n');
  return new Map(names.map((name): [string, string] => [/([^/]+):[^:]+$/.exec(name)?.[1] ?? name, name]));
}

/**
 * The images that a node of kind runs, each made of programs that are built already. CoreDNS is not among them: nothing
 * in the tests asks a name server of the cluster.
 */
export async function nodeImages(
  wanted: ReadonlyMap<string, string>,
  { programs, tools, busybox, network }: ImageSources,
): Promise<ImageSpec[]> {
  const reference = (name: string) => wanted.get(name) ?? name;
  const shell = await busyboxLayer(busybox);
  const controlPlane = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'etcd'].map((name) =>
    ofProgram(reference(name), join(programs, name), `usr/local/bin/${name}`),
  );
  const provisioner = await ofProgram(
    'localhost/local-path-provisioner:1',
    join(tools, 'local-path-provisioner'),
    'usr/local/bin/local-path-provisioner',
  );
  return [
    ...(await Promise.all(controlPlane)),
    { ...provisioner, entrypoint: ['/usr/local/bin/local-path-provisioner'] },
    { reference: reference('kube-proxy'), layer: { tar: network } },
    { reference: 'localhost/network-policies:1', layer: { tar: network } },
    { reference: reference('pause'), layer: shell, entrypoint: ['/bin/sleep', '2147483647'] },
    { reference: 'localhost/helper:1', layer: shell },
  ];
}

async function ofProgram(reference: string, path: string, name: string): Promise<ImageSpec> {
  return {
    reference,
    layer: [
      { name: 'tmp/', type: 'directory', mode: 0o1777 },
      { name, type: 'file', content: await readFile(path), mode: 0o755 },
    ],
  };
}
