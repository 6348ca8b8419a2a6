import { generateKeyPairSync } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheFolder, ROOT, stateFolder } from '../../../tools/lib/paths.ts';
import { plainProgress } from '../../../tools/lib/progress.ts';
import { run } from '../../../tools/lib/shell.ts';
import { ensureGoTools, VERIFY_SIGNATURES } from '../../../tools/release/go-tools.ts';
import { type KeyPair, keyPair, publicPem } from '../../../tools/release/sign/keys.ts';
import { type Layout, readLayout, writeLayout } from '../../../tools/release/sign/layout.ts';
import { makeRelease, type Release } from '../../../tools/release/sign/make.ts';

/** A key for this run alone. */
export function throwAwayKey(): KeyPair {
  return keyPair(generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey);
}

/** Makes the release of the image that is in dist/, in a folder. */
export async function signWith(key: KeyPair, helm: string, folder: string): Promise<Release> {
  await rm(folder, { recursive: true, force: true });
  const { stdout } = await run('git', ['rev-parse', 'HEAD'], { cwd: ROOT });
  return makeRelease({ dist: join(ROOT, 'dist'), out: folder, commit: stdout.trim(), helm, key });
}

/** What cosign says of a folder: the predicate types that it found attested, or why it refuses. */
export interface Verdict {
  attested: string[];
  refusal: string;
}

/** The release of the image that this run has built, signed with a key of its own, and cosign to verify it. */
export class SignedRelease {
  readonly folder: string;
  readonly release: Release;
  readonly #verifier: string;

  private constructor(folder: string, release: Release, verifier: string) {
    this.folder = folder;
    this.release = release;
    this.#verifier = verifier;
  }

  static async make(helm: string, key: KeyPair): Promise<SignedRelease> {
    const folder = join(stateFolder(), 'e2e', 'signed');
    const release = await signWith(key, helm, folder);
    const { signal } = new AbortController();
    const cache = cacheFolder(process.env);
    const options = { cache, label: 'cosign', programs: [VERIFY_SIGNATURES], progress: plainProgress(), signal };
    return new SignedRelease(folder, release, join(await ensureGoTools(options), VERIFY_SIGNATURES.name));
  }

  /** A layout of the release as it was written: that of the image or of the chart. */
  read(name: 'image' | 'chart'): Promise<Layout> {
    return readLayout(join(this.folder, name));
  }

  /** Asks cosign about a layout, by this public key. */
  async ask(layout: Layout, { publicKey }: KeyPair): Promise<Verdict> {
    const [path, pem] = [join(this.folder, 'asked'), join(this.folder, 'asked.pub')];
    await writeLayout(path, layout);
    await writeFile(pem, publicPem(publicKey));
    const { code, stdout, stderr } = await run(this.#verifier, [pem, path]);
    return code === 0 ? { attested: stdout.trim().split('\n'), refusal: '' } : { attested: [], refusal: stderr };
  }
}
