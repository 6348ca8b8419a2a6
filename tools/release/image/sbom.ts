import type { Lock } from './closure.ts';

/** A package of Debian with files in the image. */
export interface DebianPackage {
  name: string;
  version: string;
  architecture: string;
}

/** A Go module that is linked into one of the image's programs. */
export interface GoModule {
  path: string;
  version: string;
}

export interface Contents {
  lock: Lock;
  /** Paths in the lock file. */
  npm: readonly string[];
  /** Node's program, for each architecture. */
  nodes: readonly { version: string; architecture: string; sha256: string }[];
  debian: readonly DebianPackage[];
  go: readonly GoModule[];
}

interface Component {
  type: string;
  'bom-ref': string;
  name: string;
  version: string;
  purl: string;
  licenses?: { expression: string }[];
  hashes?: { alg: string; content: string }[];
}

function component(purl: string, name: string, version: string): Component {
  return { type: 'library', 'bom-ref': purl, name, version, purl };
}

/** npm's name of a package: what follows the last node_modules/. */
function npmName(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

function npmComponent(lock: Lock, path: string): Component {
  const { version = '', integrity, license } = lock.packages[path] ?? {};
  const name = npmName(path);
  const digest = integrity?.startsWith('sha512-') ? integrity.slice('sha512-'.length) : undefined;
  return {
    ...component(`pkg:npm/${name.replace('@', '%40')}@${version}`, name, version),
    ...(license !== undefined && { licenses: [{ expression: license }] }),
    ...(digest !== undefined && {
      hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }],
    }),
  };
}

/** The image's bill of materials, CycloneDX 1.6, without a time or a random serial: the same image has the same one. */
export function cycloneDx({ lock, npm, nodes, debian, go }: Contents): Record<string, unknown> {
  const version = lock.version ?? '';
  const components = [
    ...npm.map((path) => npmComponent(lock, path)),
    ...nodes.map(({ version: of, architecture, sha256 }) => ({
      ...component(`pkg:generic/node@${of}?arch=${architecture}`, 'node', of),
      type: 'platform',
      hashes: [{ alg: 'SHA-256', content: sha256 }],
    })),
    ...debian.map((item) =>
      component(
        `pkg:deb/debian/${item.name}@${encodeURIComponent(item.version)}?arch=${item.architecture}`,
        item.name,
        item.version,
      ),
    ),
    ...go.map((item) => component(`pkg:golang/${item.path}@${item.version}`, item.path, item.version)),
  ];
  const unique = new Map(components.map((item) => [item.purl, item]));
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'container', 'bom-ref': 'berth', name: 'berth', version } },
    components: [...unique.values()].toSorted((a, b) => (a.purl < b.purl ? -1 : 1)),
  };
}
