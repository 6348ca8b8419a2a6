import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

describe('the lock file of npm', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { resolved?: string; integrity?: string; optional?: boolean; dev?: boolean }>;
  };
  const installed = Object.entries(packages).filter(([path]) => path !== '');

  it('has the SHA-512 of every package', () => {
    const loose = installed.filter(([, { integrity }]) => integrity?.startsWith('sha512-') !== true);
    // The linters' programs for other systems than Linux with glibc have none. Nothing of them is in the image.
    const others = /^node_modules\/@(oxc-parser|oxfmt|oxlint|oxlint-tsgolint)\//;
    const isOther = (path: string): boolean =>
      packages[path]?.optional === true && packages[path].dev === true && others.test(path);
    expect(loose.map(([path]) => path).filter((path) => !isOther(path))).toEqual([]);
    expect(installed.length - loose.length).toBeGreaterThan(300);
    expect(loose.filter(([path]) => /linux-(x64|arm64)-gnu$/.test(path))).toEqual([]);
  });

  it('takes no package from elsewhere than the registry', () => {
    expect(
      installed.filter(([, { resolved }]) => resolved?.startsWith('https://registry.npmjs.org/') === false),
    ).toEqual([]);
  });

  it('belongs to a package.json that names exact versions', () => {
    const { dependencies, devDependencies } = JSON.parse(read('package.json')) as Record<string, object>;
    const versions = Object.entries({ ...dependencies, ...devDependencies });
    expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(String(version)))).toEqual([]);
  });
});

describe('the Go modules', () => {
  const modules = readdirSync(join(ROOT, 'deploy'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('/go.mod'))
    .map((path) => join('deploy', path));

  it.each(modules)('%s has a hash of everything that it requires', (path) => {
    const sums = read(join(dirname(path), 'go.sum'));
    const required = [...read(path).matchAll(/^(?:require\s+|\t)([\w.-]+\.[\w.-]+\/\S+) (v\S+)/gm)];
    const replaced = new Set(
      [...read(path).matchAll(/^(?:replace\s+|\t)(\S+)(?: v\S+)? => /gm)].map(([, name]) => name),
    );
    expect(required.length).toBeGreaterThan(0);
    // Go needs the hash of go.mod at least, for a module that no package is taken from.
    const loose = required.filter(
      ([, name, version]) => !replaced.has(name) && !sums.includes(`${name} ${version}/go.mod h1:`),
    );
    expect(loose.map(([line]) => line)).toEqual([]);
  });

  it('are checked: nothing switches go.sum or the checksum database off', () => {
    const files = ['tools', 'deploy', '.ci'].flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && /\.(ts|mjs|sh)$|Dockerfile$|^run$/.test(entry.name))
        .map((entry) => join(entry.parentPath, entry.name)),
    );
    const off = /GONOSUM|GOSUMDB|GOINSECURE|GOPRIVATE|-mod=mod/;
    expect(files.filter((path) => off.test(readFileSync(path, 'utf8')))).toEqual([]);
  });
});
