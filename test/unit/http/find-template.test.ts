import { expect, test } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { findTemplateOf } from '../../../src/http/features/instances/find-template.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import type { Namespace } from '../../../src/kube/types.ts';
import { numericId } from '../../../src/resources/ids.ts';
import { type InstanceTemplate, templateHash } from '../../../src/resources/instance-template.ts';
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
  return { client, templates: source };
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
