import { expect, test } from 'vitest';
import { customResourceDefinition } from '../../../src/resources/crd.ts';
import { CUSTOM_RESOURCES } from '../../../src/resources/index.ts';

/** The paths of the defaults that stand within items of a list. */
function defaultsIn(schema: unknown, path = '', isItem = false): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const own = isItem && 'default' in schema ? [path] : [];
  const below = Object.entries(schema).flatMap(([name, value]) =>
    // A property may be called default.
    defaultsIn(value, `${path}/${name}`, (isItem || name === 'items') && name !== 'properties'),
  );
  return [...own, ...below];
}

// The API server fills it in, and `kubectl apply`, which replaces a list as a whole, would take it out again: each time.
test.each(CUSTOM_RESOURCES.map((resource) => [resource.kind, resource] as const))(
  'no item of a list that people write in a %s has a default',
  (_kind, resource) => {
    const { versions } = (customResourceDefinition(resource) as { spec: { versions: unknown[] } }).spec;
    const found = defaultsIn(versions).filter((path) => path.includes('/properties/spec/'));
    expect(found).toEqual([]);
  },
);
