import { createHash } from 'node:crypto';

export const PROVENANCE = 'https://slsa.dev/provenance/v1';
export const BILL_OF_MATERIALS = 'https://cyclonedx.org/bom';

const SOURCE = 'https://github.com/berth-dev/berth';

/** The files that lock what the image is made of, from the root of the checkout. */
export const LOCK_FILES = ['package-lock.json', 'deploy/tools/go.mod', 'deploy/tools/go.sum'] as const;

/** What something was built from, as SLSA names it. */
export interface Material {
  uri: string;
  digest?: Record<string, string>;
}

export interface Build {
  /** Commit of the source. */
  commit: string;
  /** Lock file -> content. */
  locks: ReadonlyMap<string, Buffer>;
  /** The bill of materials of the image (CycloneDX). */
  bill: { components?: { purl: string; hashes?: { alg: string; content: string }[] }[] };
}

/** The hash of each module of a go.sum by its purl, in hexadecimal, as in-toto writes a directory's hash. */
function moduleHashes(goSum: string): Map<string, string> {
  const lines = [...goSum.matchAll(/^(\S+) (v\S+) h1:(\S+)$/gm)].filter(
    ([, , version]) => !version?.endsWith('/go.mod'),
  );
  return new Map(
    lines.map(([, path, version, hash = '']) => [
      `pkg:golang/${path}@${version}`,
      Buffer.from(hash, 'base64').toString('hex'),
    ]),
  );
}

function materials({ commit, locks, bill }: Build): Material[] {
  const modules = moduleHashes(locks.get('deploy/tools/go.sum')?.toString() ?? '');
  const source = `git+${SOURCE}@${commit}`;
  const files = [...locks].map(([path, content]) => ({
    uri: `${source}#${path}`,
    digest: { sha256: createHash('sha256').update(content).digest('hex') },
  }));
  const packages = (bill.components ?? []).map(({ purl, hashes }): Material => {
    const dirHash = modules.get(purl);
    const digest = {
      ...Object.fromEntries((hashes ?? []).map(({ alg, content }) => [alg.toLowerCase().replace('-', ''), content])),
      ...(dirHash !== undefined && { dirHash }),
    };
    return { uri: purl, ...(Object.keys(digest).length > 0 && { digest }) };
  });
  return [{ uri: source, digest: { gitCommit: commit } }, ...files, ...packages];
}

/**
 * How the release was built (SLSA provenance 1.0): from which commit, by which program, from which packages. npm packages
 * have the hash of package-lock.json, Go modules that of go.sum, Node its own, and Debian's packages the version, for
 * which apt checks the archive's signature.
 */
export function provenance(build: Build): object {
  return {
    buildDefinition: {
      buildType: `${SOURCE}/blob/main/SECURITY.md#signatures`,
      externalParameters: { source: `git+${SOURCE}`, commit: build.commit, command: 'npm run release' },
      internalParameters: {},
      resolvedDependencies: materials(build),
    },
    runDetails: {
      builder: { id: `${SOURCE}/tree/main/tools/release`, version: { node: process.versions.node } },
      metadata: {},
    },
  };
}
