import { expect, test } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { findTemplateOf } from '../../../src/http/features/instances/find-template.ts';
import { missingSshKeys } from '../../../src/http/features/instances/find.ts';
import type { KubeClient, ListOptions } from '../../../src/kube/client/client.ts';
import type { Namespace, ObjectRef } from '../../../src/kube/types.ts';
import { numericId } from '../../../src/resources/ids.ts';
import { type InstanceTemplate, templateHash } from '../../../src/resources/instance-template.ts';
import type { SshKey } from '../../../src/resources/ssh-key.ts';
import { InTurn } from '../../../src/lib/in-turn.ts';
import { settle } from '../../support/fake-clock.ts';
import { cacheOf } from '../../support/controller-world.ts';

const NEW: InstanceTemplate = {
  metadata: { name: 't', namespace: 'me', uid: 'uid-t', resourceVersion: '2' },
  spec: { displayName: '', image: 'r.io/app:1' },
};

/** A replica whose cache has not seen the template yet, when another replica has made it. */
function replica(onList: (templates: ReturnType<typeof cacheOf<InstanceTemplate>>) => void) {
  const templates = cacheOf<InstanceTemplate>([], INDEXES.templates);
  const client = {
    list: async () => {
      await Promise.resolve();
      onList(templates);
      return { items: [NEW], resourceVersion: '2' };
    },
    get: () => Promise.resolve(NEW),
  } as unknown as Pick<KubeClient, 'list' | 'get'>;
  const source = { templates: templates.store, namespaces: cacheOf<Namespace>().store, own: 'berth-system' };
  return { client, templates: source, liveLooks: new InTurn() };
}

test.each([
  ['has not come', () => undefined],
  ['comes meanwhile', (templates: ReturnType<typeof cacheOf<InstanceTemplate>>) => templates.upsert(NEW)],
])('a template of another replica is found by a live list, when the event of the watch %s', async (_, onList) => {
  const byId = { templateId: numericId('uid-t') };
  expect(await findTemplateOf(replica(onList), 'me', byId)).toEqual(NEW);
  expect(await findTemplateOf(replica(onList), 'me', { templateHashId: templateHash(NEW.spec) })).toEqual(NEW);
  expect(await findTemplateOf(replica(onList), 'me', { templateId: 1 })).toBeUndefined();
});

/** A tenant with 1000 templates that no cache shows yet. `calls` are those of the API server. */
function manyTemplates() {
  const made = Array.from({ length: 1000 }, (_, n): InstanceTemplate => ({
    metadata: { name: `t${n}`, namespace: 'me', uid: `uid-${n}`, resourceVersion: '2' },
    spec: { displayName: '', image: `r.io/app:${n}` },
  }));
  const calls: { limit?: number; name?: string }[] = [];
  const client = {
    list: (_type: unknown, { limit = Infinity, continue: from = '0' }: ListOptions) => {
      calls.push({ limit });
      const end = Number(from) + limit;
      const items = made.slice(Number(from), end);
      return Promise.resolve({ items, resourceVersion: '2', ...(end < made.length && { continue: String(end) }) });
    },
    get: (_type: unknown, { name }: ObjectRef) => {
      calls.push({ name });
      return Promise.resolve(made.find(({ metadata }) => metadata.name === name));
    },
  } as unknown as Pick<KubeClient, 'list' | 'get'>;
  const templates = cacheOf<InstanceTemplate>([], INDEXES.templates).store;
  const source = { templates, namespaces: cacheOf<Namespace>().store, own: 'berth-system' };
  return { calls, source: { client, templates: source, liveLooks: new InTurn() } };
}

test('a template that is not there costs small pages of names, and one by its id the pages up to it', async () => {
  const { calls, source } = manyTemplates();
  expect(await findTemplateOf(source, 'me', { templateId: 1 })).toBeUndefined();
  expect(calls.splice(0)).toEqual(Array.from({ length: 10 }, () => ({ limit: 100 })));
  const found = await findTemplateOf(source, 'me', { templateId: numericId('uid-150') });
  expect(found?.metadata.name).toBe('t150');
  expect(calls.splice(0)).toEqual([{ limit: 100 }, { limit: 100 }, { name: 't150' }]);
});

test('a hash that no template has reads a few templates, however many are new', async () => {
  const { calls, source } = manyTemplates();
  expect(await findTemplateOf(source, 'me', { templateHashId: 'none' })).toBeUndefined();
  expect(calls.filter(({ name }) => name !== undefined)).toHaveLength(16);
  expect(calls).toHaveLength(17);
});

test('a tenant looks for one thing at a time that no cache has, and another need not wait for it', async () => {
  let [underWay, most] = [0, 0];
  const { promise: open, resolve } = Promise.withResolvers<void>();
  const client = {
    list: async () => {
      underWay += 1;
      most = Math.max(most, underWay);
      await open;
      underWay -= 1;
      return { items: [], resourceVersion: '2' };
    },
  } as unknown as KubeClient;
  const templates = {
    templates: cacheOf<InstanceTemplate>([], INDEXES.templates).store,
    namespaces: cacheOf<Namespace>().store,
    own: 'own',
  };
  const sshKeys = cacheOf<SshKey>([], INDEXES.sshKeys).store;
  const source = { client, templates, stores: { sshKeys }, liveLooks: new InTurn() };
  const asked = [
    ...Array.from({ length: 40 }, (_, id) => findTemplateOf(source, 'hostile', { templateId: id })),
    ...Array.from({ length: 40 }, (_, id) => missingSshKeys(source, 'hostile', [id])),
    findTemplateOf(source, 'honest', { templateId: 1 }),
  ];
  await settle();
  expect(underWay).toBe(2);
  resolve();
  await Promise.all(asked);
  expect(most).toBe(2);
});
