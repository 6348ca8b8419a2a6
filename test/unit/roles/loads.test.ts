import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import undici from 'undici';
import { beforeAll, expect, it } from 'vitest';
import { Agent, Pool } from '../../../src/lib/lean-http.ts';

const ROLES = fileURLToPath(new URL('../../../src/roles/', import.meta.url));

/** Prints the files of packages that a process has loaded when its role could start, and Node's own modules. */
const SCRIPT = `
  import { registerHooks } from 'node:module';
  const files = [];
  registerHooks({ load: (url, context, next) => (files.push(url), next(url, context)) });
  for (const file of process.argv.slice(1)) await import(file);
  const packaged = files.filter((url) => url.includes('/node_modules/'));
  const own = process.moduleLoadList.map((name) => name.replace(/^.* /, ''));
  console.log(JSON.stringify({ files: packaged.map((url) => url.split('/node_modules/').at(-1)), own }));
`;

interface Loaded {
  files: string[];
  own: string[];
}

function load(role: string): Loaded {
  const args = ['--input-type=module', '--eval', SCRIPT, `${ROLES}run-role.ts`, `${ROLES}${role}.ts`];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as Loaded;
}

function has({ files }: Loaded, start: string): boolean {
  return files.some((file) => file.startsWith(start));
}

// Each costs a process 2 to 13 MiB.
const LARGE = [
  'express/',
  'ssh2/',
  'iovalkey/',
  '@opentelemetry/sdk-',
  'swagger-ui-dist/swagger',
  'yaml/',
  'undici/lib/web/',
  'undici/lib/mock/',
];

const loaded = new Map<string, Loaded>();
beforeAll(() => {
  for (const role of ['controller', 'api', 'dashboard', 'ssh', 'notifier']) loaded.set(role, load(role));
}, 60_000);

it.each([
  ['controller', []],
  ['api', ['express/']],
  ['dashboard', ['express/']],
  ['ssh', ['ssh2/']],
  ['notifier', []],
])('the role %s loads of what is large only what it uses: %j', (role, wanted) => {
  const found = loaded.get(role);
  expect(found && LARGE.filter((name) => has(found, name))).toEqual(wanted);
  // What every role has, so that the list above is of something.
  expect(found && has(found, 'undici/lib/dispatcher/pool')).toBe(true);
  // Node's copy of undici, for `fetch` and what else browsers have.
  expect(found?.own).toContain('http');
  expect(found?.own).not.toContain('internal/deps/undici/undici');
});

it('what stands in for undici is what its entry gives', () => {
  expect([Pool, Agent]).toEqual([undici.Pool, undici.Agent]);
  const requests = [Pool, undici.Client].map((one): unknown => Reflect.get(one.prototype, 'request'));
  expect(requests).toEqual([expect.any(Function), requests[0]]);
});
