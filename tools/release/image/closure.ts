/** One package of `package-lock.json`, lockfileVersion 3. */
export interface LockedPackage {
  version?: string;
  integrity?: string;
  license?: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

export interface Lock {
  version?: string;
  packages: Record<string, LockedPackage>;
}

const MODULES = 'node_modules/';

/** The path at which Node finds `name` from the package at `from`: in the nearest node_modules on the way up. */
function resolve(lock: Lock, from: string, name: string): string | undefined {
  for (let base = from; ; base = base.slice(0, Math.max(0, base.lastIndexOf(MODULES))).replace(/\/$/, '')) {
    const path = base === '' ? `${MODULES}${name}` : `${base}/${MODULES}${name}`;
    if (path in lock.packages) return path;
    if (base === '') return undefined;
  }
}

/**
 * The paths of the packages that the program needs at run time, sorted: its dependencies and theirs, without `excluded`
 * and what only those need. Optional dependencies are left out: ssh2 runs without its native add-ons, and pg without the
 * sockets of Cloudflare. So are packages of types, which client-node asks for. Throws when the lock file lacks a package.
 */
export function runtimePackages(lock: Lock, excluded: readonly string[]): string[] {
  const found = new Set<string>();
  const waiting = [''];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const { dependencies = {}, optionalDependencies = {} } = lock.packages[path] ?? {};
    for (const name of Object.keys(dependencies)) {
      if (excluded.includes(name) || name.startsWith('@types/') || name in optionalDependencies) continue;
      const dependency = resolve(lock, path, name);
      if (dependency === undefined)
        throw new Error(`package-lock.json has no ${name}, which ${path || 'the root'} needs`);
      if (found.has(dependency)) continue;
      found.add(dependency);
      waiting.push(dependency);
    }
  }
  return [...found].toSorted();
}

/** Whether the image needs a file of a package: code, data, add-ons, files for the browser, and the licence. */
export function isRuntimeFile(path: string): boolean {
  if (/(^|\/)\./.test(path)) return false;
  if (/(^|\/)(licen[cs]e|copying|notice)(\.|$)/i.test(path)) return true;
  if (/^(tests?|docs?|examples?|benchmarks?)\//.test(path)) return false;
  return /\.(js|cjs|mjs|json|node|wasm|css|html|png|svg|ico)$/.test(path) && !/(^|\/)tsconfig[^/]*\.json$/.test(path);
}
