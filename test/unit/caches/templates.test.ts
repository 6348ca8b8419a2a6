import { expect, test } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { findTemplate } from '../../../src/caches/templates.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { KubeObject } from '../../../src/kube/types.ts';
import type { IndexFunctions } from '../../../src/kube/watch/store.ts';
import { numericId } from '../../../src/resources/ids.ts';
import { type InstanceTemplate, templateHash } from '../../../src/resources/instance-template.ts';

const SPEC = { displayName: '', image: 'r.io/app:1' };

function storeOf<T extends KubeObject>(objects: T[], indexers?: IndexFunctions<T>) {
  const cache = new Cache<T>({ indexers, onListenerError: () => undefined });
  cache.replace(objects, '1');
  return cache.store;
}

function template(namespace: string, shared: boolean): InstanceTemplate {
  const labels = { 'berth.dev/shared': String(shared) };
  return { metadata: { name: 't', namespace, uid: `uid-${namespace}`, labels }, spec: SPEC };
}

const labelled = (name: string, value: string) => ({
  metadata: { name, labels: { 'berth.dev/shared-templates': value } },
});

/** Which of these templates the tenant `me` finds by their common content. */
function found(...templates: InstanceTemplate[]): string | undefined {
  const namespaces = storeOf([labelled('operator', 'true'), labelled('no', 'false'), labelled('me', 'true')]);
  const source = { templates: storeOf(templates, INDEXES.templates), namespaces, own: 'berth-system' };
  const byHash = findTemplate(source, 'me', { templateHashId: templateHash(SPEC) });
  for (const one of templates) {
    const byId = findTemplate(source, 'me', { templateId: numericId(one.metadata.uid ?? '') });
    if (templates.length === 1) expect(byId).toBe(byHash);
  }
  return byHash?.metadata.namespace;
}

test.each([
  ['me', false, true],
  ['operator', true, true],
  ['operator', false, false],
  ['berth-system', true, true],
  ['berth-system', false, false],
  ['no', true, false],
  ['other', true, false],
])('a template of namespace %s, marked %s, is found by another tenant: %s', (namespace, shared, isFound) => {
  expect(found(template(namespace, shared))).toBe(isFound ? namespace : undefined);
});

test('a tenant finds its own template before one that is shared', () => {
  expect(found(template('operator', true), template('me', false))).toBe('me');
});

test('both id and hash must be those of the template', () => {
  const source = { templates: storeOf([template('me', false)], INDEXES.templates), namespaces: storeOf([]), own: 'x' };
  const templateId = numericId('uid-me');
  expect(findTemplate(source, 'me', { templateId, templateHashId: templateHash(SPEC) })).toBeDefined();
  expect(findTemplate(source, 'me', { templateId, templateHashId: 'other' })).toBeUndefined();
});
