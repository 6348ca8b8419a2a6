import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOMS, roomOf, violations } from './layers.ts';

const ROOT = join(import.meta.dirname, '../../..');
/** Files beside each other that can still be read as one list. */
const MOST_FILES = 14;
/** A file that can still be read in one sitting. */
const MOST_LINES = 300;

const paths = globSync('{src,tools}/**/*.{ts,tsx,mjs}', { cwd: ROOT });
const files = new Map(paths.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]));

function planted(path: string, line: string): ReadonlyMap<string, string> {
  return new Map([...files, [path, `${line}\n${files.get(path) ?? ''}`]]);
}

test('every import goes to a room that the importing room may use, and no files import each other in a circle', () => {
  expect(files.size).toBeGreaterThan(400);
  expect(violations(files)).toEqual([]);
});

test('every room of the table has files', () => {
  const used = new Set(paths.map(roomOf));
  expect(Object.keys(ROOMS).filter((room) => !used.has(room))).toEqual([]);
});

test.each([
  ['src/kube/errors.ts', "import { Inventory } from '../inventory/inventory.ts';"],
  ['src/controllers/gpu-instance/decide/plan.ts', "import type { Run } from '../act/run.ts';"],
  ['src/inventory/nodes/node-view.ts', "import type { Run } from '../../controllers/gpu-instance/act/run.ts';"],
  ['src/http/routes/api.ts', "export { dashboardRouter } from '../../web/router.ts';"],
  ['src/ssh/server.ts', "const http = await import('../http/app.ts');"],
  ['src/roles/ssh.ts', "import { run } from '../../tools/lib/shell.ts';"],
  ['src/gateway/router.ts', "import '../controllers/start.ts';"],
  ['src/runtime/controller.ts', "import {\n  type GpuInstance,\n} from '../resources/gpu-instance.ts';"],
  ['src/inventory/inventory.ts', "import type { Request } from 'express';"],
  ['src/access/activity.ts', "import type { Connection } from 'ssh2';"],
  ['src/ssh/server.ts', "import type { Connection } from 'ssh2';"],
  ['src/ledger/report.ts', "import { Client } from 'pg';"],
  ['src/web/page/main.tsx', "import { isOver } from '../session.ts';"],
  ['src/web/page/main.tsx', "import { type Session } from '../session.ts';"],
  ['src/web/page/main.tsx', "import type { InstanceRecord } from '../../http/schemas/instance.ts';"],
  ['src/wire/records.ts', "export { instanceSchema } from '../http/schemas/instance.ts';"],
  ['src/cli/main.ts', "import type { InstanceRecord } from '../http/schemas/instance.ts';"],
  ['src/caches/table.ts', "import type { V1Pod } from '@kubernetes/client-node';"],
])('a planted import in %s is reported: %s', (path, line) => {
  expect(violations(planted(path, line))).toContainEqual(expect.stringContaining(`${path} imports `));
});

test('a planted circle of types alone is reported', () => {
  const found = violations(planted('src/kube/types.ts', "import type { Condition } from './conditions.ts';"));
  expect(found.filter((text) => text.startsWith('circle: ')).length).toBeGreaterThan(0);
});

test('a file outside of every room is reported', () => {
  expect(violations(new Map([['src/new.ts', '']]))).toEqual(['src/new.ts is in no room']);
});

test(`no file of src has more than ${MOST_LINES} lines`, () => {
  const shipped = globSync('src/**/*.*', { cwd: ROOT });
  expect(shipped.length).toBeGreaterThan(300);
  const lines = shipped.map((path) => [path, readFileSync(join(ROOT, path), 'utf8').split('\n').length - 1] as const);
  expect(lines.filter(([, count]) => count > MOST_LINES)).toEqual([]);
});

test(`no folder has more than ${MOST_FILES} source files beside its subfolders`, () => {
  const counts = Map.groupBy(paths, dirname);
  const full = [...counts].filter(([, inside]) => inside.length > MOST_FILES);
  expect(full.map(([folder, inside]) => `${folder}: ${inside.length}`)).toEqual([]);
});
