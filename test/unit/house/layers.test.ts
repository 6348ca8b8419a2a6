import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOMS, roomOf, violations } from './layers.ts';

const ROOT = join(import.meta.dirname, '../../..');

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
  ['src/http/server/api-router.ts', "export { dashboardRouter } from '../../web/router.ts';"],
  ['src/http/features/logs/routes.ts', "import { usageQuerySchema } from '../usage/schema.ts';"],
  ['src/http/features/offers/routes.ts', "import { instanceOf } from '../instances/find.ts';"],
  ['src/http/interface/route.ts', "import type { ApiContext } from '../server/context.ts';"],
  ['src/ssh/server.ts', "const http = await import('../http/server/app.ts');"],
  ['src/roles/ssh.ts', "import { run } from '../../tools/lib/shell.ts';"],
  ['src/gateway/router.ts', "import '../controllers/start.ts';"],
  ['src/runtime/controller.ts', "import {\n  type GpuInstance,\n} from '../resources/gpu-instance.ts';"],
  ['src/inventory/inventory.ts', "import type { Request } from 'express';"],
  ['src/access/activity.ts', "import type { Connection } from 'ssh2';"],
  ['src/ssh/server.ts', "import type { Connection } from 'ssh2';"],
  ['src/ledger/report.ts', "import { Client } from 'pg';"],
  ['src/web/page/main.tsx', "import { isOver } from '../session.ts';"],
  ['src/web/page/main.tsx', "import { type Session } from '../session.ts';"],
  ['src/web/page/main.tsx', "import type { InstanceRecord } from '../../http/features/instances/schema.ts';"],
  ['src/wire/records.ts', "export { instanceSchema } from '../http/features/instances/schema.ts';"],
  ['src/cli/main.ts', "import type { InstanceRecord } from '../http/features/instances/schema.ts';"],
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
