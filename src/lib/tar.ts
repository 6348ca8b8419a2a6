/** One member of a tar archive held in memory. */
export type TarEntry =
  | { name: string; type: 'file'; content: Buffer; mode?: number }
  | { name: string; type: 'directory'; mode?: number }
  | { name: string; type: 'link'; target: string };

const BLOCK = 512;

/** A tar archive (POSIX.1-1988 ustar) of entries owned by root, without times: the same entries make the same bytes. */
export function tarOf(entries: readonly TarEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const content = entry.type === 'file' ? entry.content : Buffer.alloc(0);
    return [tarHeader(entry, content.length), content, tarPadding(content.length)];
  });
  return Buffer.concat([...parts, TAR_END]);
}

/** Two blocks of zeros end an archive. */
export const TAR_END = Buffer.alloc(2 * BLOCK);

/** The zeros that fill the last block of a member. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}

const TYPE_FLAGS = { file: '0', link: '2', directory: '5' } as const;
const DEFAULT_MODES = { file: 0o644, link: 0o777, directory: 0o755 } as const;

/** Bytes of a name, and of the folders before it in a field of their own. */
const NAME = 100;
const PREFIX = 155;

/** A path as its two fields hold it. Throws RangeError when they cannot. */
function splitName(path: string): { prefix: string; name: string } {
  if (Buffer.byteLength(path) <= NAME) return { prefix: '', name: path };
  for (let cut = path.indexOf('/'); cut !== -1; cut = path.indexOf('/', cut + 1)) {
    const [prefix, name] = [path.slice(0, cut), path.slice(cut + 1)];
    if (name !== '' && Buffer.byteLength(name) <= NAME && Buffer.byteLength(prefix) <= PREFIX) return { prefix, name };
  }
  throw new RangeError(`The name is too long for a tar archive: ${path}`);
}

/**
 * The header block of a member of `size` bytes. The last part of a name has at most 100 bytes, all before it 155, and the
 * target of a link 100.
 */
export function tarHeader(
  entry: Pick<TarEntry, 'name' | 'type'> & { mode?: number; target?: string },
  size: number,
): Buffer {
  const { type, target = '', mode = DEFAULT_MODES[type] } = entry;
  const { prefix, name } = splitName(entry.name);
  if (Buffer.byteLength(target) > NAME) throw new RangeError(`The target is too long for a tar archive: ${target}`);
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, offset: number, length: number) =>
    block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, offset, 'ascii');
  block.write(name, 0, 'utf8');
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(0, 136, 12);
  block.write('        ', 148, 'ascii');
  block.write(TYPE_FLAGS[type], 156, 'ascii');
  block.write(target, 157, 'utf8');
  block.write('ustar\u000000', 257, 'ascii');
  block.write(prefix, 345, 'utf8');
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'ascii');
  return block;
}

/** The files of a ustar archive by their names. Its links and folders are left out. */
export function filesInTar(archive: Buffer): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  for (let at = 0; at < archive.length && archive[at] !== 0;) {
    const text = (from: number, to: number): string =>
      archive.toString('utf8', at + from, at + to).split('\0', 1)[0] ?? '';
    const size = Number.parseInt(text(124, 136), 8);
    const start = at + BLOCK;
    const prefix = text(345, 500);
    const name = prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`;
    if (text(156, 157) === TYPE_FLAGS.file) files.set(name, archive.subarray(start, start + size));
    at = start + Math.ceil(size / BLOCK) * BLOCK;
  }
  return files;
}
