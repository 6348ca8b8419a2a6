import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CUSTOM_RESOURCES } from '../../../src/resources/index.ts';
import { customResourceDefinition } from '../../../src/resources/crd.ts';
import { referencePage } from '../../../tools/release/crds/reference.ts';
import { ROOT } from '../../../tools/lib/paths.ts';

const page = referencePage();

test('docs/run/reference.md is what the schemas say', () => {
  expect(readFileSync(join(ROOT, 'docs/run/reference.md'), 'utf8')).toBe(page);
});

test.each(CUSTOM_RESOURCES.map(({ kind, spec }) => [kind, spec] as const))('it has every field of %s', (kind, spec) => {
  const section = page.split('\n## ').find((text) => text.startsWith(`${kind}\n`)) ?? '';
  const { shape } = spec as unknown as { shape: Record<string, unknown> };
  const missing = Object.keys(shape).filter((field) => !section.includes(`- \`spec.${field}\`: `));
  expect([Object.keys(shape).length > 0, missing]).toEqual([true, []]);
});

test('it says what a field takes, what holds without it, and how a refusal reads', () => {
  expect(page).toContain('- `spec.gpu.count`: integer, 1 to 64. Number of GPUs, or of MIG slices. Default: `1`.\n');
  expect(page).toMatch(/`spec.maxDuration`: string, at most 32 characters\. .*Otherwise refused: write a duration/);
  expect(page).toContain('- `spec.publicKey`: string, ');
  expect(page).toContain('- type cannot change: delete this instance and create another');
});

test('what can be selected by is in the definition', () => {
  const instances = CUSTOM_RESOURCES.find(({ kind }) => kind === 'GPUInstance');
  const definition = instances && JSON.stringify(customResourceDefinition(instances));
  expect(definition).toContain('"selectableFields":[{"jsonPath":".status.claim.node"}');
});
