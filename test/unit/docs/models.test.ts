import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { CACHES } from '../../../src/caches/table.ts';
import { readServer } from '../../../src/gateway/discovery/server-spec.ts';
import type { Service } from '../../../src/kube/types.ts';

const text = readFileSync(new URL('../../../docs/use/models.md', import.meta.url), 'utf8');
const yaml = /^```yaml\n(.*?)^```/ms.exec(text)?.[1] ?? '';
const [deployment, service] = parseAllDocuments(yaml).map((document) => document.toJS() as Service);

const NAMESPACES = {
  own: 'berth-system',
  mayScale: () => true,
  find: (name: string) => ({ metadata: { name, labels: { 'berth.dev/shared-models': 'true' } } }),
};

test('the documented Service is a model server whose model has the name that the examples call', () => {
  const server = readServer(service as Service, NAMESPACES);
  expect(server).toMatchObject({ sharedRank: -1, problems: [], aliases: [{ alias: 'qwen', model: 'Qwen/Qwen3-8B' }] });
  expect(deployment).toMatchObject({ spec: { template: { metadata: { labels: { app: 'qwen' } } } } });
  for (const use of text.matchAll(/\bmodel ?= ?"([\w-]+)"|MODEL=([\w-]+)/g)) expect(use[1] ?? use[2]).toBe('qwen');
});

test('every annotation in the table is one that is read', () => {
  const names = [...text.matchAll(/^\| `berth\.dev\/([\w-]+)` \|/gm)].map(([, name = '']) => name);
  const values: Record<string, string> = {
    'model-engine': 'ollama',
    'model-dialects': 'chat',
    'model-path-prefix': '/x',
    'scale-target': 'statefulsets.apps/x',
    'scale-replicas': '2',
    'scale-idle-seconds': '60',
    'scale-wait-seconds': '9',
    'model-names': 'a, b',
    'model-media-hosts': 'a.example.com',
    'model-fallbacks': 'b, c',
    'model-fallback-on': 'overflow',
  };
  const annotations = Object.fromEntries(names.map((name) => [`berth.dev/${name}`, values[name] ?? 'true']));
  const labels = { 'berth.dev/model-server': 'true' };
  const read = readServer({ metadata: { name: 's', namespace: 'n', labels, annotations } }, NAMESPACES);
  expect(names).toHaveLength(15);
  expect(read).toMatchObject({
    port: 'true',
    prefix: '/x',
    aliases: [{ alias: 'true' }],
    engine: 'ollama',
    credential: 'true',
    mediaHosts: ['a.example.com'],
    dialects: ['chat'],
    fallback: { models: ['b', 'c'], on: ['overflow'] },
    sharedRank: 0,
    problems: [],
    scale: {
      target: { group: 'apps', version: 'v1', plural: 'statefulsets', name: 'x' },
      replicas: 2,
      idleSeconds: 60,
      waitSeconds: 9,
      models: ['a', 'b'],
    },
  });
});

test('a Service and an EndpointSlice without the label are not even watched, as the page says', () => {
  const label = 'berth.dev/model-server=true';
  expect([CACHES.services.labelSelector, CACHES.slices.labelSelector]).toEqual([label, label]);
  expect(text.replaceAll('\n', ' ')).toContain(`there only when the EndpointSlice has the label \`${label}\``);
});

test('what the page calls lost is lost by the table of every field, too', () => {
  const table = readFileSync(new URL('../../../docs/build/model-dialects.md', import.meta.url), 'utf8').split('\n');
  const paragraph = /^\*\*Lost\*\*(.*?)^$/ms.exec(text)?.[1] ?? '';
  const names = [...paragraph.matchAll(/`([a-z_]+)`/g)].map(([, name = '']) => name);
  expect(names.length).toBeGreaterThan(9);
  for (const name of names)
    expect(table.filter((row) => row.split('|')[1]?.includes(`\`${name}\``) && row.includes('**lost**'))).not.toEqual(
      [],
    );
});
