import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';
import { NEEDS } from '../../../src/web/scopes.ts';

it('the account of the local cluster may do what each scope of a person needs', () => {
  const text = readFileSync(join(ROOT, 'docs/build/local-cluster.md'), 'utf8');
  const [, command = ''] = /kubectl create role berth (--verb=.*?)\nkubectl/s.exec(text) ?? [];
  const named = new Set([...command.matchAll(/(\w+)\.berth\.dev/g)].map(([, resource]) => resource));
  const { 'fleet:read': _operators, ...ofTenants } = NEEDS;
  const needed = Object.values(ofTenants).flatMap((list) => list.map(({ resource }) => resource));
  expect(command).toContain("--verb='*'");
  expect(needed.filter((resource) => !named.has(resource))).toEqual([]);
});
