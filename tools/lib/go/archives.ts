import { chmod, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { download, Unavailable } from '../download.ts';
import { LocalFailure } from '../failure.ts';
import { ROOT } from '../paths.ts';
import type { Progress } from '../progress.ts';
import { lastLines, run } from '../shell.ts';
import { KWOK_STAGES, kubernetesVersion, kwokVersion, lockedVersion } from './programs.ts';

/** A file of a release, with one program or several. */
interface Archive {
  /** Its host and path, which are its place below a mirror too. */
  place: string;
  /** The programs in it, each with its path in the archive; without one the file is the program. */
  programs: Readonly<Record<string, string | undefined>>;
}

/** What the names of unfinished downloads begin with. */
const PARTIAL = '.download-';

/** The hashes of releases by their places. */
export type Pins = ReadonlyMap<string, string>;

/** Go's names for the processors that releases are made for. */
const PROCESSORS: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** The hashes that the makers publish, from deploy/local/archives.sha256, which `sha256sum --check` reads too. */
export async function readPins(): Promise<Pins> {
  const lines = (await readFile(join(ROOT, 'deploy/local/archives.sha256'), 'utf8')).trim().split('\n');
  return new Map(lines.map((line): [string, string] => [line.slice(66), line.slice(0, 64)]));
}

/** The releases of the locked versions for this machine. */
function releases(): Archive[] {
  const processor = PROCESSORS[arch()];
  if (platform() !== 'linux' || processor === undefined) return [];
  const etcd = `v${lockedVersion('kubernetes', 'go.etcd.io/etcd/server/v3')}`;
  const etcdName = `etcd-${etcd}-linux-${processor}`;
  const kwok = `github.com/kubernetes-sigs/kwok/releases/download/v${kwokVersion()}`;
  const containerd = lockedVersion('containerd', 'github.com/containerd/containerd/v2');
  const kubernetes = ['apiserver', 'controller-manager', 'scheduler', 'proxy'].map((name) => `kube-${name}`);
  return [
    ...[...kubernetes, 'kubectl', 'kubelet'].map((name) => ({
      place: `dl.k8s.io/release/v${kubernetesVersion()}/bin/linux/${processor}/${name}`,
      programs: { [name]: undefined },
    })),
    {
      place: `github.com/etcd-io/etcd/releases/download/${etcd}/${etcdName}.tar.gz`,
      programs: { etcd: `${etcdName}/etcd` },
    },
    { place: `${kwok}/kwok-linux-${processor}`, programs: { kwok: undefined } },
    { place: `${kwok}/stage-fast.yaml`, programs: { [KWOK_STAGES]: undefined } },
    {
      place: `github.com/containerd/containerd/releases/download/v${containerd}/containerd-static-${containerd}-linux-${processor}.tar.gz`,
      programs: {
        containerd: 'bin/containerd',
        'containerd-shim-runc-v2': 'bin/containerd-shim-runc-v2',
        ctr: 'bin/ctr',
      },
    },
  ];
}

/** The mirror that BERTH_MIRROR names, `https:/` for the makers' own hosts, or undefined where nothing is downloaded. */
function source(): string | undefined {
  const mirror = process.env['BERTH_MIRROR'];
  if (mirror === 'none') return undefined;
  return mirror ? mirror.replace(/\/+$/, '') : 'https:/';
}

/** Of these files of the program folder, those that a release with a known hash has. */
export function downloadable(names: readonly string[], pins: Pins): string[] {
  if (source() === undefined) return [];
  const offered = new Set(
    releases()
      .filter(({ place }) => pins.has(place))
      .flatMap(({ programs }) => Object.keys(programs)),
  );
  return names.filter((name) => offered.has(name));
}

export interface DownloadOptions {
  /** The folder of the programs. */
  folder: string;
  /** The files that it lacks. */
  missing: readonly string[];
  pins: Pins;
  progress: Progress;
  signal: AbortSignal;
}

/**
 * Downloads what releases have of the missing files. One line says what cannot be downloaded, and why; a host that
 * does not answer is not asked again. Throws LocalFailure for a file that cannot be unpacked.
 */
export async function downloadPrograms({ folder, missing, pins, progress, signal }: DownloadOptions): Promise<void> {
  const base = source();
  if (base === undefined) return;
  const wanted = releases().filter(({ place, programs }) => {
    return pins.has(place) && missing.some((name) => Object.hasOwn(programs, name));
  });
  const failed = new Map<string, string[]>();
  const unreachable = new Map<string, string>();
  for (const [position, { place, programs }] of wanted.entries()) {
    const url = `${base}/${place}`;
    const { host } = new URL(url);
    const names = Object.keys(programs).filter((name) => missing.includes(name));
    const earlier = unreachable.get(host);
    if (earlier !== undefined) {
      failed.get(earlier)?.push(...names);
      continue;
    }
    let detail = '';
    progress.step({
      title: `Downloading ${names.join(', ')}`,
      index: position + 1,
      total: wanted.length,
      detail: () => detail,
    });
    const path = join(folder, `${PARTIAL}${place.split('/').at(-1)}`);
    const sha256 = pins.get(place) ?? '';
    const onBytes = (present: number, size: number | undefined): void => {
      detail = ` (${megabytes(present)}${size === undefined ? '' : ` of ${megabytes(size)}`} MB)`;
    };
    try {
      await download({ url, sha256, path, onBytes, signal });
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      const reason = `${host} ${error.message}`;
      failed.set(reason, [...(failed.get(reason) ?? []), ...names]);
      if (error.unreachable) unreachable.set(host, reason);
      continue;
    }
    await unpack(path, programs, folder);
  }
  progress.end();
  if (failed.size === 0) return;
  const all = [...failed].map(([reason, names]) => `${names.join(', ')} (${reason})`);
  progress.line(`Built here, because it cannot be downloaded: ${all.join('; ')}.`);
}

/** Removes what cut downloads left, once the programs are there by another way. */
export async function dropPartials(folder: string): Promise<void> {
  const left = (await readdir(folder)).filter((name) => name.startsWith(PARTIAL));
  for (const name of left) await rm(join(folder, name), { recursive: true });
}

/** Puts the programs of a verified file into the folder, whole or not at all. */
async function unpack(path: string, programs: Archive['programs'], folder: string): Promise<void> {
  const unpacked = `${path}.unpacked`;
  const members = Object.values(programs).filter((member) => member !== undefined);
  if (members.length > 0) {
    await rm(unpacked, { recursive: true, force: true });
    await mkdir(unpacked);
    const { code, stderr } = await run('tar', ['-xzf', path, '-C', unpacked, ...members]);
    if (code !== 0) {
      throw new LocalFailure(`${path} cannot be unpacked.`, 'Install tar and gzip.', lastLines(stderr, 5));
    }
  }
  for (const [name, member] of Object.entries(programs)) {
    const file = member === undefined ? path : join(unpacked, member);
    if (name !== KWOK_STAGES) await chmod(file, 0o755);
    await rename(file, join(folder, name));
  }
  await rm(unpacked, { recursive: true, force: true });
  await rm(path, { force: true });
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}
