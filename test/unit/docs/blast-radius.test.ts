import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { expect, test } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';

interface Rule {
  apiGroups: string[];
  resources: string[];
  resourceNames?: string[];
  verbs: string[];
}

interface Manifest {
  kind: string;
  rules?: Rule[];
}

const ROLES = ['controller', 'api', 'dashboard', 'ssh'];
const text = readFileSync(join(ROOT, 'docs/blast-radius.md'), 'utf8');

/** One right as a line, for example `get secrets named any, in own`. */
function lines(resources: string[], names: string[], verbs: string[], where: string): string[] {
  const named = names.length === 0 ? '' : ` named ${names.toSorted().join(' ')}`;
  return resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}${named}, ${where}`));
}

/** The rights of a role in what the chart renders with its default values. */
function granted(role: string): string[] {
  const manifests = parseAllDocuments(readFileSync(join(ROOT, `deploy/base/${role}.yaml`), 'utf8'));
  const all = manifests.map((document) => document.toJS() as Manifest);
  return all.flatMap(({ kind, rules = [] }) =>
    rules.flatMap(({ apiGroups: [group = ''], resources, resourceNames = [], verbs }) => {
      const full = resources.map((resource) => (group === '' ? resource : `${resource}.${group}`));
      return lines(full, resourceNames, verbs, kind === 'ClusterRole' ? 'everywhere' : 'own');
    }),
  );
}

/** The rights that the page names. Names of objects follow their resource without a comma. */
function named(role: string): string[] {
  const chapter = text.split(/^## /m).find((one) => one.startsWith(`${role}\n`)) ?? '';
  const rows = [...chapter.matchAll(/^\| (`[^|]*`) \| ([a-z, ]+) \| (\w+) \|$/gm)];
  return rows.flatMap(([, rights = '', verbs = '', where = '']) => {
    const [, resource = '', names = ''] = /^`([^`]+)` (`.+`)$/.exec(rights) ?? [];
    const codes = (list: string): string[] => [...list.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
    const resources = names === '' ? codes(rights) : [resource];
    return lines(resources, codes(names), verbs.split(', '), where);
  });
}

test.each(ROLES)('the page names every right of the %s role, and no other', (role) => {
  expect(granted(role).length).toBeGreaterThan(5);
  expect(named(role).toSorted()).toEqual([...new Set(granted(role))].toSorted());
});

test('every role that the chart runs has a chapter', () => {
  const base = readFileSync(join(ROOT, 'deploy/base/kustomization.yaml'), 'utf8');
  const accounts = [...base.matchAll(/- ([a-z]+)\.yaml/g)]
    .map(([, name = '']) => name)
    .filter((name) => /^kind: ServiceAccount$/m.test(readFileSync(join(ROOT, `deploy/base/${name}.yaml`), 'utf8')));
  expect(accounts.toSorted()).toEqual(ROLES.toSorted());
});
