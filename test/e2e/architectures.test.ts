import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { filesInTar } from '../../src/lib/tar.ts';
import { OWN_ARCHITECTURE } from '../../tools/lib/host/architecture.ts';
import { ROOT } from '../../tools/lib/paths.ts';
import { type Outcome, run } from '../../tools/lib/shell.ts';
import { ARCHITECTURES } from '../../tools/release/names.ts';
import type { Descriptor } from '../../tools/release/image/oci.ts';
import { blobOf, type Layout, layoutOf } from '../../tools/release/sign/layout.ts';
import { debProgram } from '../support/deb-program.ts';
import { imagesOf } from '../support/layouts.ts';

/** The machine that the header of an ELF program names. */
const MACHINES: Readonly<Record<number, string>> = { 0x3e: 'amd64', 0xb7: 'arm64' };
/** The emulators of Debian by architecture. */
const EMULATORS: Readonly<Record<string, string>> = { amd64: 'qemu-x86_64-static', arm64: 'qemu-aarch64-static' };

/** Unpacks the layers of an image into a folder. */
async function unpack(layout: Layout, image: Descriptor, folder: string): Promise<void> {
  const { layers } = JSON.parse(blobOf(layout, image).toString()) as { layers: Descriptor[] };
  for (const layer of layers) {
    const input = join(folder, 'blobs/sha256', layer.digest.slice('sha256:'.length));
    const { code, stderr } = await run('tar', ['-xzf', input, '-C', join(folder, 'root')]);
    if (code !== 0) throw new Error(stderr);
  }
}

/** What a program answers first. Its input ends after that: a server may leave without an answer when it sees the end. */
async function firstAnswer(command: string, args: readonly string[], input: string): Promise<string> {
  const { stdin, stdout } = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  stdin.write(input);
  try {
    for await (const chunk of stdout.setEncoding('utf8')) return String(chunk);
    return '';
  } finally {
    stdin.end();
  }
}

describe('the image of a release', () => {
  let folder: string;
  let layout: Layout;
  let images: ReturnType<typeof imagesOf>;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-architectures-'));
    const archive = join(ROOT, 'dist/berth-image.tar');
    layout = layoutOf(filesInTar(await readFile(archive)));
    const [entry] = layout.manifests;
    if (entry === undefined) throw new Error('The archive names no image.');
    images = imagesOf(layout, entry);
    const { code, stderr } = await run('sh', ['-ec', `mkdir '${folder}/root'; tar -xf '${archive}' -C '${folder}'`]);
    expect(code, stderr).toBe(0);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('is one index of all architectures, whose programs are all for the right machine', () => {
    expect(images.map(({ platform }) => platform.architecture)).toEqual(ARCHITECTURES);
    for (const image of images) {
      const { layers } = JSON.parse(blobOf(layout, image).toString()) as { layers: Descriptor[] };
      const programs = layers
        .flatMap((layer) => [...filesInTar(gunzipSync(blobOf(layout, layer)))])
        .filter(([, content]) => content.length > 20 && content.readUInt32BE(0) === 0x7f454c46);
      const { architecture } = image.platform;
      const wrong = programs.filter(([, content]) => MACHINES[content.readUInt16LE(18)] !== architecture);
      expect(wrong.map(([name]) => name)).toEqual([]);
      const names = programs.map(([name]) => name.split('/').at(-1));
      expect(names).toEqual(expect.arrayContaining(['node', 'busybox', 'tini', 'rsync', 'direct', 'sftp-server']));
    }
  });

  it('runs under an emulator for the other architecture: roles, command line and tools of instances', async () => {
    const foreign = images.filter(({ platform }) => platform.architecture !== OWN_ARCHITECTURE);
    expect(foreign).toHaveLength(1);
    for (const image of foreign) {
      await unpack(layout, image, folder);
      const root = join(folder, 'root');
      const emulator = await debProgram(EMULATORS[image.platform.architecture] ?? '', 'qemu-user-static');
      const emulated = (args: string[], input = ''): Promise<Outcome> =>
        run(emulator, ['-L', root, ...args], { input, timeout: 60_000 });
      const output = async (...args: string[]): Promise<string> => {
        const { code, stdout, stderr } = await emulated(args);
        expect(code, `${args.join(' ')}: ${stdout}${stderr}`).toBe(0);
        return stdout + stderr;
      };
      const at = (path: string): string => join(root, path);
      const node = image.platform.architecture === 'arm64' ? 'arm64' : 'x64';
      expect(await output(at('usr/bin/node'), '-p', 'process.arch')).toBe(`${node}\n`);
      expect(await output(at('usr/bin/node'), at('app/main.js'), '--help')).toContain('berth');
      expect(await output(at('tools/bin/busybox'), 'echo', 'here')).toBe('here\n');
      expect(await output(at('tools/bin/tini'), '--version')).toContain('tini version');
      const loader = (await readFile(at('tools/bin/rsync'), 'utf8')).match(/ld-linux-\S+/)?.[0] ?? '';
      const rsync = [at(`tools/lib/${loader}`), '--library-path', at('tools/lib'), at('tools/lib/rsync')];
      expect(await output(...rsync, '--version')).toContain('rsync  version');
      const scp = await emulated([at('tools/bin/scp'), '-f', at('etc/nsswitch.conf')], '\0\0\0');
      expect(scp.stdout).toContain('hosts: files dns');
      // SSH_FXP_INIT of version 3, and the answer to it.
      const sftp = await firstAnswer(
        emulator,
        ['-L', root, at('tools/bin/sftp-server')],
        '\0\0\0\u0005\u0001\0\0\0\u0003',
      );
      expect(sftp.slice(4, 9)).toBe('\u0002\0\0\0\u0003');
      // These want an instance around them, and say so.
      for (const name of ['direct', 'monitor', 'relay'])
        expect(await emulated([at(`tools/bin/${name}`)]), name).toMatchObject({ code: 1 });
    }
  }, 240_000);
});
