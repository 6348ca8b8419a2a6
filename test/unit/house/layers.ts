import { posix } from 'node:path';

const CORE = ['src/lib'];
const KUBERNETES = ['src/kube', ...CORE];
const DOMAIN = ['src/resources', ...KUBERNETES];
/** What every feature of the HTTP interface may use, and each other feature with it. */
const INTERFACE = [
  'src/http/interface',
  'src/wire',
  'src/ports',
  'src/access',
  'src/budgets',
  'src/caches',
  'src/inventory',
  'src/ledger',
  'src/runtime',
  ...DOMAIN,
];
const FEATURE = ['src/http/features/instances', ...INTERFACE];
const FEATURES = [
  'cli',
  'events',
  'fleet',
  'limits',
  'logs',
  'metrics',
  'models',
  'ports',
  'registries',
  'ssh-keys',
  'templates',
  'terminal',
  'usage',
  'webhooks',
].map((name) => `src/http/features/${name}`);

/** Every room, and the rooms that its files may import from. `TYPES` has those of whose files they may import types. A file is in the room with the longest name. */
export const ROOMS: Readonly<Record<string, readonly string[]>> = {
  'src/lib': [],
  'src/wire': [],
  'src/kube': CORE,
  'src/resources': KUBERNETES,
  'src/runtime': KUBERNETES,
  'src/config': [...CORE, 'src/resources'],
  'src/inventory': DOMAIN,
  'src/caches': DOMAIN,
  'src/ledger': DOMAIN,
  'src/budgets': ['src/ledger', ...DOMAIN],
  'src/access': DOMAIN,
  'src/controllers': [
    'src/controllers/gpu-instance/decide',
    'src/controllers/gpu-instance/act',
    'src/budgets',
    'src/caches',
    'src/inventory',
    'src/ledger',
    'src/runtime',
    ...DOMAIN,
  ],
  'src/controllers/gpu-instance/decide': ['src/inventory', 'src/ledger', ...DOMAIN],
  'src/controllers/gpu-instance/act': [
    'src/controllers/gpu-instance/decide',
    'src/controllers',
    'src/caches',
    'src/inventory',
    'src/runtime',
    ...DOMAIN,
  ],
  'src/gateway': [
    'src/gateway/dialects',
    'src/wire',
    'src/access',
    'src/budgets',
    'src/ledger',
    'src/runtime',
    ...DOMAIN,
  ],
  'src/gateway/dialects': CORE,
  'src/direct': KUBERNETES,
  'src/ssh': ['src/wire', 'src/ssh/ssh2', 'src/direct', 'src/access', ...DOMAIN],
  'src/ssh/ssh2': CORE,
  'src/notifier': ['src/runtime', ...DOMAIN],
  'src/ports': ['src/direct', 'src/access', ...DOMAIN],
  'src/http/interface': ['src/wire', 'src/access', 'src/runtime', ...DOMAIN],
  // An instance is rented from an offer. Beside that, a feature may use instances and no other feature.
  'src/http/features/offers': INTERFACE,
  'src/http/features/instances': ['src/http/features/offers', ...INTERFACE],
  ...Object.fromEntries(FEATURES.map((feature) => [feature, FEATURE])),
  'src/http/server': ['src/http/features/offers', ...FEATURES, ...FEATURE],
  'src/web': ['src/http/interface', 'src/http/server', 'src/access', 'src/runtime', ...DOMAIN],
  'src/web/page': ['src/wire', 'src/lib'],
  'src/doctor': ['src/wire', 'src/inventory', 'src/runtime', ...DOMAIN],
  'src/sink': ['src/wire', 'src/ledger', ...DOMAIN],
  'src/commands': ['src/config', 'src/doctor', 'src/sink', 'src/ssh', 'src/access', 'src/runtime', ...DOMAIN],
  'src/cli': ['src/wire'],
  'src/roles': [
    'src/config',
    'src/controllers',
    'src/http/interface',
    'src/http/server',
    'src/http/features/terminal',
    'src/gateway',
    'src/ssh',
    'src/notifier',
    'src/ports',
    'src/web',
    'src/access',
    'src/budgets',
    'src/caches',
    'src/inventory',
    'src/runtime',
    ...DOMAIN,
  ],
  'src/main.ts': ['src/roles', 'src/commands', 'src/cli'],
  'tools/lib': DOMAIN,
  'tools/cluster': ['tools/lib', 'src/config', ...DOMAIN],
  'tools/release': ['tools/lib', ...DOMAIN],
  'tools/english': ['tools/lib'],
  'tools/site': ['tools/lib'],
  'tools/scripts': ['tools/cluster', 'tools/lib'],
  'tools/kind-node': ['tools/cluster', 'tools/lib', 'tools/release'],
  'tools/bootstrap.mjs': [],
};

/** The rooms whose files may import types of others, and no values: these go to where nothing of the server is. */
const TYPES: Readonly<Record<string, readonly string[]>> = {
  'src/wire': ['src/http/features/offers', 'src/http/features/instances', ...FEATURES, 'src/resources'],
  'src/web/page': ['src/web'],
};

/** Packages that only some rooms may import. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  '@kubernetes/client-node': ['src/kube'],
  express: ['src/http', 'src/gateway', 'src/web'],
  ssh2: ['src/ssh/ssh2'],
  pg: ['src/sink'],
  '@opentelemetry/api': ['src/runtime'],
  '@opentelemetry/exporter-trace-otlp-proto': ['src/runtime'],
  '@opentelemetry/resources': ['src/runtime'],
  '@opentelemetry/sdk-trace': ['src/runtime'],
};

const IMPORT = /(?:^|\n)\s*(?:import|export)\b[^;'"]*?from\s*'([^']+)'|\bimport\s*\(?\s*'([^']+)'/g;

interface Import {
  /** A path from the root of the checkout, or the name of a package. */
  name: string;
  /** Nothing of it is left when types are stripped. */
  isType: boolean;
}

const read = new Map<string, Import[]>();

/** A file is read once, however often the tables are held against it. */
function importsOf(path: string, text: string): Import[] {
  const key = `${path}\n${text}`;
  const known = read.get(key);
  if (known !== undefined) return known;
  const found = [...text.matchAll(IMPORT)].map(([statement, from, bare]) => {
    const name = from ?? bare ?? '';
    const isType = /^\s*(?:import|export)\s+type\b/.test(statement);
    return { name: name.startsWith('.') ? posix.join(posix.dirname(path), name) : name, isType };
  });
  read.set(key, found);
  return found;
}

export function roomOf(path: string): string | undefined {
  const found = Object.keys(ROOMS).filter((room) => path === room || path.startsWith(`${room}/`));
  return found.toSorted((a, b) => b.length - a.length)[0];
}

/** Every import that the tables do not allow, and every circle between files. `files` maps paths to texts. */
export function violations(files: ReadonlyMap<string, string>): string[] {
  const graph = new Map([...files].map(([path, text]) => [path, importsOf(path, text)]));
  const found: string[] = [];
  for (const [path, imports] of graph) {
    const room = roomOf(path);
    if (room === undefined) found.push(`${path} is in no room`);
    for (const { name, isType } of imports) {
      const allowed = PACKAGES[name.startsWith('@') ? name : (name.split('/')[0] ?? '')];
      if (allowed !== undefined && !allowed.some((home) => path.startsWith(`${home}/`)))
        found.push(`${path} imports the package ${name}`);
      const other = roomOf(name);
      if (room === undefined || other === undefined || other === room) continue;
      if (ROOMS[room]?.includes(other) || (isType && TYPES[room]?.includes(other))) continue;
      found.push(`${path} imports ${name}: ${room} may not use ${other}`);
    }
  }
  const names = [...graph].map(([path, imports]) => [path, imports.map(({ name }) => name)] as const);
  return [...found, ...circles(new Map(names))];
}

/** The circles of a graph, by a walk that notices when it meets a file that it is still inside of. */
function circles(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const found: string[] = [];
  function visit(path: string, trail: readonly string[]): void {
    const start = trail.indexOf(path);
    if (start !== -1) found.push(`circle: ${[...trail.slice(start), path].join(' -> ')}`);
    if (start !== -1 || done.has(path)) return;
    for (const next of graph.get(path) ?? []) if (graph.has(next)) visit(next, [...trail, path]);
    done.add(path);
  }
  for (const path of graph.keys()) visit(path, []);
  return found;
}
