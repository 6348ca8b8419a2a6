import { createHash } from 'node:crypto';
import { chmod, copyFile, cp, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ask, type Engine } from '../cluster/kind/engine.ts';
import { LocalFailure } from '../lib/failure.ts';
import { filesIn } from '../lib/files-in.ts';
import { kubernetesVersion } from '../lib/go/programs.ts';
import { imageArchive, importArchive } from '../lib/images/image.ts';
import { ROOT } from '../lib/paths.ts';
import type { Progress } from '../lib/progress.ts';
import { lastLines, run } from '../lib/shell.ts';
import { waitFor } from '../lib/wait.ts';
import { type ImageSources, nodeImages, wantedImages } from './images.ts';

/** Debian 12 has the last systemd that knows cgroup v1. */
const SUITE = 'bookworm';
const PACKAGES = `
systemd,systemd-sysv,dbus,kmod,mount,util-linux,procps,findutils,bash,iproute2,iptables,nftables,conntrack,ethtool,ipset,
runc,containernetworking-plugins,e2fsprogs,ca-certificates,curl,jq
`.replaceAll('\n', '');
const SOURCES = join(ROOT, 'deploy/kind/node');

export interface NodeOptions extends Omit<ImageSources, 'network'> {
  /** Path of the program that enforces network policies. */
  policies: string;
  engine: Engine;
  cache: string;
  progress: Progress;
}

/** The reference of the node image; it changes with what is in it. */
async function referenceOf({ programs, tools, policies }: NodeOptions): Promise<string> {
  const hash = createHash('sha256').update(`${programs} ${tools} ${policies} ${PACKAGES}`);
  for (const file of (await filesIn(SOURCES)).toSorted()) hash.update(await readFile(join(SOURCES, file)));
  for (const file of ['images.ts', 'node.ts']) hash.update(await readFile(join(import.meta.dirname, file)));
  return `localhost/berth-kind-node:${kubernetesVersion()}-${hash.digest('hex').slice(0, 12)}`;
}

/** Makes the node image, unless the engine has it, and returns its reference. Throws LocalFailure. */
export async function ensureNode(options: NodeOptions): Promise<string> {
  const { engine, progress } = options;
  const reference = await referenceOf(options);
  if ((await run(engine, ['image', 'inspect', reference])).code === 0) return reference;
  const step = (index: number, title: string, expect: number) => progress.step({ title, index, total: 4, expect });
  step(1, 'Making the root file system of the node', 60);
  const root = await rootFileSystem(options);
  step(2, 'Importing it', 20);
  const base = await ask(engine, 'import', '--change', 'CMD ["sleep","infinity"]', root);
  const node = await ask(engine, 'run', '--detach', '--privileged', '--network', 'none', base);
  try {
    step(3, 'Loading its images', 60);
    await fill(node, root, options);
    step(4, `Committing ${reference}`, 60);
    const changes = ['ENTRYPOINT ["/usr/local/bin/entrypoint","/sbin/init"]', 'STOPSIGNAL SIGRTMIN+3'];
    // systemd prepares less in what says that it is a container.
    changes.push('ENV container=docker', 'CMD []');
    await ask(engine, 'commit', ...changes.flatMap((change) => ['--change', change]), node, reference);
  } finally {
    await run(engine, ['rm', '--force', '--volumes', node]);
    await run(engine, ['rmi', base]);
    progress.end();
  }
  return reference;
}

/** Debian as a tar file, made once per machine. */
async function rootFileSystem({ cache }: NodeOptions): Promise<string> {
  const folder = join(cache, 'images');
  const name = createHash('sha256').update(PACKAGES).digest('hex').slice(0, 12);
  const path = join(folder, `kind-node-${name}.tar`);
  if ((await stat(path).catch(() => undefined)) !== undefined) return path;
  await mkdir(folder, { recursive: true });
  const partial = `${path}.${process.pid}`;
  const args = ['--variant=minbase', `--include=${PACKAGES}`, '--format=tar', SUITE, partial];
  const { code, stderr } = await run('mmdebstrap', args);
  if (code !== 0)
    throw new LocalFailure('Debian cannot be installed for the node.', 'Read the lines below.', lastLines(stderr, 8));
  await rename(partial, path);
  return path;
}

/** Puts programs, units and images into the running container. */
async function fill(node: string, root: string, options: NodeOptions): Promise<void> {
  const { engine, cache, programs, tools } = options;
  const wanted = await wantedImages(tools);
  const stage = join(cache, 'images', `kind-node.${process.pid}`);
  const place = async (name: string, from: string, folder: string) => {
    await mkdir(join(stage, folder), { recursive: true });
    await copyFile(join(from, name), join(stage, folder, name));
    await chmod(join(stage, folder, name), 0o755);
  };
  try {
    await cp(SOURCES, stage, { recursive: true });
    for (const name of ['kubelet', 'kubectl']) await place(name, programs, 'usr/bin');
    await place('kubeadm', tools, 'usr/bin');
    for (const name of ['containerd', 'containerd-shim-runc-v2', 'ctr']) await place(name, programs, 'usr/local/bin');
    const settings = join(stage, 'etc/containerd/config.toml');
    await writeFile(settings, (await readFile(settings, 'utf8')).replace('@PAUSE@', wanted.get('pause') ?? ''));
    await writeFile(join(stage, 'kind/version'), `v${kubernetesVersion()}`);
    await ask(engine, 'cp', `${stage}/.`, `${node}:/`);
    await ask(engine, 'exec', node, 'sh', '-ec', PREPARE);
    await ask(engine, 'exec', '--detach', node, '/usr/local/bin/containerd');
    const ready = async () => (await run(engine, ['exec', node, 'ctr', 'version'])).code === 0;
    if ((await waitFor(ready, { timeout: 20_000, interval: 200 })) === undefined)
      throw new LocalFailure('containerd does not start in the container.', 'Try `containerd` in it by hand.');
    const network = join(stage, 'network.tar');
    await copyFile(root, network);
    for (const path of [join(programs, 'kube-proxy'), options.policies]) await appendProgram(network, path);
    for (const spec of await nodeImages(wanted, { ...options, network })) {
      // Nothing is unpacked here: the disk of this container is an overlay, on which there can be no other.
      await importArchive({ engine, node }, await imageArchive(spec), spec.reference, false);
    }
    await ask(engine, 'exec', node, 'sh', '-ec', FINISH);
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
}

const PREPARE = `
ln -sf /usr/lib/systemd/systemd /sbin/init
mkdir -p /etc/kubernetes/manifests /etc/cni/net.d /var/log/journal
systemctl set-default multi-user.target
systemctl enable containerd kubelet
# A container must not touch what only a machine needs.
systemctl mask systemd-udevd systemd-udev-trigger systemd-tmpfiles-setup systemd-binfmt systemd-remount-fs \\
  systemd-modules-load systemd-sysctl getty.target systemd-logind
echo ReadKMsg=no >> /etc/systemd/journald.conf
rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
`;

const FINISH = `
pkill -TERM -x containerd
for i in $(seq 50); do pgrep -x containerd > /dev/null || break; sleep 0.1; done
rm -rf /run/containerd /var/log/*.log
`;

/** Both programs of the pods' network call iptables, nft and ipset, which the root file system of the node has. */
async function appendProgram(tar: string, path: string): Promise<void> {
  const from = ['-C', dirname(path), basename(path)];
  const args = ['--append', '--file', tar, '--transform', 's,^,usr/local/bin/,', ...from];
  const { code, stderr } = await run('tar', args);
  if (code !== 0)
    throw new LocalFailure(`The image of ${basename(path)} cannot be made.`, 'Read the lines below.', [stderr]);
}
