import { expect, it } from 'vitest';
import { templateContentSchema, type TemplateRecord } from '../../../src/http/features/templates/schema.ts';
import { bodyOf, draftOf, EMPTY, isPlain } from '../../../src/web/page/templates/content.ts';

const TEMPLATE: TemplateRecord = {
  id: 7,
  object: 'template',
  name: 'training',
  image: 'pytorch/pytorch:latest',
  runtype: 'args',
  disk_gb: 40,
  hash_id: 'h',
  shared: false,
  read_only: false,
  created_at: '2026-01-01T00:00:00Z',
  env: { HF_HOME: '/workspace/hf', EQUALS: 'a=b=c', EMPTY: '' },
  ports: [
    { container_port: 8000, protocol: 'tcp', name: 'api' },
    { container_port: 53, protocol: 'udp', name: null },
  ],
  command: ['python', '-m', 'train now'],
  args: ['--x', ' '],
  on_start: null,
  registry: 'ghcr',
};

it('a template goes through the form and comes out the same', () => {
  const template = { ...TEMPLATE, args: ['--epochs', '3'] };
  expect(isPlain(template)).toBe(true);
  const { name, image, runtype, disk_gb, env, command, args, registry } = template;
  const ports = [
    { container_port: 8000, protocol: 'tcp', name: 'api' },
    { container_port: 53, protocol: 'udp' },
  ];
  const body = bodyOf(draftOf(template));
  expect(body).toEqual({ name, image, runtype, disk_gb, env, command, args, registry, ports });
  expect(templateContentSchema.safeParse(body).success).toBe(true);
});

it.each([
  ['a variable', { env: { KEY: 'one\ntwo' } }],
  ['a word', { command: ['a\nb'] }],
  ['an empty word', { args: [''] }],
])('is not offered where %s would be taken apart', (_what, part) => {
  expect(isPlain({ ...TEMPLATE, args: [], ...part })).toBe(false);
});

it('what was left empty is left out, and what is no number goes to the API, which has the words for it', () => {
  expect(bodyOf({ ...EMPTY, name: 'x' })).toEqual({ name: 'x' });
  expect(bodyOf({ ...EMPTY, name: 'x', disk: 'much', ports: 'http/tcp' })).toEqual({
    name: 'x',
    disk_gb: 'much',
    ports: [{ container_port: 'http', protocol: 'tcp' }],
  });
});
