import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
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
const text = readFileSync(join(ROOT, 'docs/run/threat-model.md'), 'utf8');

/** One right as a line, for example `get secrets named any, in own`. */
function lines(resources: string[], names: string[], verbs: string[], where: string): string[] {
  const named = names.length === 0 ? '' : ` named ${names.toSorted().join(' ')}`;
  return resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}${named}, ${where}`));
}

/** What the chart renders for a role with its default values. */
function rendered(role: string): Manifest[] {
  const manifests = parseAllDocuments(readFileSync(join(ROOT, `deploy/base/${role}.yaml`), 'utf8'));
  return manifests.map((document) => document.toJS() as Manifest);
}

/** The test of the chart that keeps the rules of what is off by default, the ClusterRole's first. */
const KEPT: Readonly<Record<string, string>> = { notifier: 'webhooks_test', 'usage-sink': 'usage_sink_test' };

function renderedWhenOn(test: string): Manifest[] {
  const kept = readFileSync(join(ROOT, `charts/berth/tests/__snapshot__/${test}.yaml.snap`), 'utf8');
  const [rules = {}] = Object.values(parse(kept) as Record<string, Record<number, string>>);
  return ['ClusterRole', 'Role']
    .slice(0, Object.keys(rules).length)
    .map((kind, index) => ({ kind, rules: parse(rules[index + 1] ?? '') as Rule[] }));
}

/** The rights that manifests give. */
function granted(manifests: readonly Manifest[]): string[] {
  return manifests.flatMap(({ kind, rules = [] }) =>
    rules.flatMap(({ apiGroups: [group = ''], resources, resourceNames = [], verbs }) => {
      const full = resources.map((resource) => (group === '' ? resource : `${resource}.${group}`));
      return lines(full, resourceNames, verbs, kind === 'ClusterRole' ? 'everywhere' : 'own');
    }),
  );
}

/** The rights that the page names. Names of objects follow their resource without a comma. */
function named(role: string): string[] {
  const chapter = text.split(/^###? /m).find((one) => one.startsWith(`${role}\n`)) ?? '';
  const rows = [...chapter.matchAll(/^\| (`[^|]*`) \| ([a-z, ]+) \| (\w+) \|$/gm)];
  return rows.flatMap(([, rights = '', verbs = '', where = '']) => {
    const [, resource = '', names = ''] = /^`([^`]+)` (`.+`)$/.exec(rights) ?? [];
    const codes = (list: string): string[] => [...list.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
    const resources = names === '' ? codes(rights) : [resource];
    return lines(resources, codes(names), verbs.split(', '), where);
  });
}

test.each([...ROLES, ...Object.keys(KEPT)])('the page names every right of the %s role, and no other', (role) => {
  const kept = KEPT[role];
  const rights = granted(kept === undefined ? rendered(role) : renderedWhenOn(kept));
  expect(rights.length).toBeGreaterThan(2);
  expect(named(role).toSorted()).toEqual([...new Set(rights)].toSorted());
});

test('every role that the chart runs has a chapter', () => {
  const base = readFileSync(join(ROOT, 'deploy/base/kustomization.yaml'), 'utf8');
  const accounts = [...base.matchAll(/- ([a-z]+)\.yaml/g)]
    .map(([, name = '']) => name)
    .filter((name) => /^kind: ServiceAccount$/m.test(readFileSync(join(ROOT, `deploy/base/${name}.yaml`), 'utf8')));
  expect(accounts.toSorted()).toEqual(ROLES.toSorted());
});
