import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import type { Api } from '../api/client.ts';
import { instancePath } from '../api/find-instance.ts';
import type { RemoteCommand } from '../api/remote-command.ts';
import { CliFailure, EXIT, usageFailure } from '../failure.ts';
import { withoutKey } from '../settings.ts';
import { plain } from '../text.ts';
import { BEGIN, NOTHING, PACK, UNPACK, WAITS } from './script.ts';

/** Characters of what a program says about its failure. */
const MOST_WORDS = 1000;

/** Collects the end of what is said there. */
function wordsOf(stream: Readable | null): () => string {
  let said = '';
  stream?.on('data', (part) => (said = (said + String(part)).slice(-MOST_WORDS)));
  return () => plain(said.trim());
}

/** The tar of this machine, which every system has. Its output has no metadata files of macOS. */
function tar(words: readonly string[], stdio: 'pipe' | 'ignore'): ChildProcess {
  const env = { ...withoutKey(process.env), COPYFILE_DISABLE: '1' };
  return spawn('tar', words, { stdio: [stdio, 'pipe', 'pipe'], env });
}

/** The exit status of a program of this machine. */
async function ended(child: ChildProcess): Promise<number> {
  const [code] = (await once(child, 'close')) as [number | null];
  return code ?? 1;
}

/** Throws when this machine cannot pack files: before anything is rented. */
export async function requireTar(): Promise<void> {
  const child = tar(['--version'], 'ignore');
  child.stdout?.resume();
  child.stderr?.resume();
  await ended(child).catch(() => {
    throw new CliFailure('This machine has no program tar, which packs files.', {
      next: 'Install tar, or leave out --upload and add --no-fetch.',
    });
  });
}

/** Throws when the folder to upload is none. */
export async function requireFolder(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() === true) return;
  const what = found === undefined ? 'is not there' : 'is no folder';
  throw usageFailure(`--upload ${path} ${what}.`, 'Write the path of a folder, for example --upload .');
}

/** Throws when files would be written among others. */
export async function requireEmpty(path: string): Promise<void> {
  const names = await readdir(path).catch((error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? [] : undefined));
  if (names?.length === 0) return;
  const what =
    names === undefined ? 'is no folder that can be read' : 'has files, which would be mixed with those of the run';
  throw usageFailure(`--output ${path} ${what}.`, 'Write the path of a new folder.');
}

/** Throws when no folder can be made there: before anything is rented. */
export async function requireWritable(path: string): Promise<void> {
  let above = dirname(resolve(path));
  while ((await stat(above).catch(() => undefined)) === undefined && dirname(above) !== above) above = dirname(above);
  try {
    await rmdir(await mkdtemp(join(above, '.berth-')));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const next = 'Write --output with another folder, or --no-fetch.';
    throw usageFailure(`The output of the program cannot be stored in ${above}: ${plain(why)}.`, next);
  }
}

interface Remote {
  api: Api;
  id: string;
}

/** Runs a command in the instance. Throws with its words when it fails. */
async function runThere({ api, id }: Remote, command: string, use: (remote: RemoteCommand) => void): Promise<number> {
  const remote = await api.command(instancePath(id), command);
  const said = wordsOf(remote.stderr);
  use(remote);
  const code = await remote.status.finally(() => remote.close());
  if (code === 0 || code === NOTHING) return code;
  throw new CliFailure(`Files cannot be copied: ${said() || `tar ended with ${code}`}`, {
    ...(code === 127 && { next: 'The image needs the programs sh, tar and find.' }),
  });
}

/** Bytes of names that any system takes in a command line. */
const MOST_NAMES = 100_000;

/** Packs what has these names. More than fit into a command line it reads, which not every tar can. */
function pack(folder: string, names: readonly string[], exclude: readonly string[]): ChildProcess {
  const words = [...exclude.map((one) => `--exclude=${one}`), '-cf', '-', '-C', folder];
  const listed = names.map((name) => `${name}\0`).join('');
  if (listed.length < MOST_NAMES) return tar([...words, ...names], 'ignore');
  const packer = tar([...words, '--null', '-T', '-'], 'pipe');
  packer.stdin?.on('error', () => undefined).end(listed);
  return packer;
}

/** Whether the run waits for files: once it has them, others would take the place of what the program made of them. */
export async function waitsForFiles(there: Remote): Promise<boolean> {
  const code = await runThere(there, WAITS, ({ stdin, stdout }) => {
    stdin.end();
    stdout.resume();
  });
  return code !== NOTHING;
}

/** Brings the content of a folder into the working folder of the run, and lets the program begin. Returns its bytes. */
export async function uploadFolder(to: Remote, folder: string, exclude: readonly string[]): Promise<number> {
  // Not the folder itself: its owner and its mode are those of the disk there.
  const names = (await readdir(folder)).map((name) => `./${name}`);
  let bytes = 0;
  if (names.length > 0) {
    let packed: { code: Promise<number>; said: () => string; kill: () => void } | undefined;
    await runThere(to, UNPACK, ({ stdin }) => {
      // Not before somebody reads it: Node drops the output of a program that has ended.
      const packer = pack(folder, names, exclude);
      packer.stdout?.on('data', ({ length }: Buffer) => (bytes += length)).pipe(stdin);
      packed = { code: ended(packer), said: wordsOf(packer.stderr), kill: () => void packer.kill() };
      packed.code.catch(() => undefined);
    }).catch((error: unknown) => {
      packed?.kill();
      throw error;
    });
    if ((await packed?.code) !== 0) {
      const next = 'Let it be read, or leave it out with --exclude.';
      throw new CliFailure(`${folder} cannot be read: ${packed?.said() ?? ''}`, { next });
    }
  }
  await runThere(to, BEGIN, ({ stdin, stdout }) => {
    stdin.end();
    stdout.resume();
  });
  return bytes;
}

/** Fetches what the program wrote into a new folder, as a whole or not at all. False when it wrote nothing. */
export async function fetchFiles(from: Remote, folder: string): Promise<boolean> {
  const path = resolve(folder);
  await mkdir(dirname(path), { recursive: true });
  const draft = await mkdtemp(join(dirname(path), `.${basename(path)}-`));
  try {
    // Neither owners nor modes of others: the archive is of the instance.
    const unpacker = tar(['--no-same-permissions', '-xof', '-', '-C', draft], 'pipe');
    const said = wordsOf(unpacker.stderr);
    const unpacked = ended(unpacker);
    unpacked.catch(() => undefined);
    unpacker.stdin?.on('error', () => undefined);
    const code = await runThere(from, PACK, ({ stdin, stdout }) => {
      stdin.end();
      if (unpacker.stdin !== null) stdout.pipe(unpacker.stdin);
    }).catch((error: unknown) => {
      unpacker.kill();
      throw error;
    });
    if (code === NOTHING) return false;
    if ((await unpacked) !== 0) throw new CliFailure(`${folder} cannot be written: ${said()}`, { exitCode: EXIT.lost });
    await rmdir(path).catch(() => undefined);
    await rename(draft, path);
    return true;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}
