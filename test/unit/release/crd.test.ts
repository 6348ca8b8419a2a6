import { expect, test } from 'vitest';
import { customResourceDefinition } from '../../../src/resources/crd.ts';
import { CUSTOM_RESOURCES } from '../../../src/resources/index.ts';

interface Schema {
  description?: string;
  type?: string;
  pattern?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema;
  default?: unknown;
}

function schemaOf(resource: (typeof CUSTOM_RESOURCES)[number]): Schema {
  const definition = customResourceDefinition(resource) as {
    spec: { versions: { schema: { openAPIV3Schema: Schema } }[] };
  };
  return definition.spec.versions[0]?.schema.openAPIV3Schema ?? {};
}

/** Every field with its path, metadata aside, which is Kubernetes' own. */
function fieldsOf(schema: Schema, path: string): [string, Schema][] {
  const inner = [
    ...Object.entries(schema.properties ?? {}).map(([name, field]): [string, Schema] => [`${path}.${name}`, field]),
    ...(schema.items ? [[`${path}[]`, schema.items] as [string, Schema]] : []),
    ...(schema.additionalProperties ? [[`${path}{}`, schema.additionalProperties] as [string, Schema]] : []),
  ];
  return inner
    .filter(([name]) => !name.endsWith('.metadata'))
    .flatMap(([name, field]) => [[name, field] as [string, Schema], ...fieldsOf(field, name)]);
}

test.each(CUSTOM_RESOURCES.map((resource) => [resource.kind, resource] as const))(
  'kubectl explain says something about every field of %s',
  (kind, resource) => {
    const fields = fieldsOf(schemaOf(resource), kind);
    expect(fields.length).toBeGreaterThan(4);
    expect(fields.filter(([, { description = '' }]) => description.length < 5).map(([path]) => path)).toEqual([]);
  },
);

test.each(CUSTOM_RESOURCES.map((resource) => [resource.kind, resource] as const))(
  'no refusal of %s shows a pattern where it could say what to write',
  (kind, resource) => {
    const fields = fieldsOf(schemaOf(resource), kind);
    expect(fields.filter(([, { pattern }]) => pattern !== undefined).map(([path]) => path)).toEqual([]);
  },
);

// kubectl apply and Argo CD replace lists whole: a default in an item is a difference at each apply.
test.each(CUSTOM_RESOURCES.map((resource) => [resource.kind, resource] as const))(
  'no item of a list of %s has a default that an apply would find changed',
  (kind, resource) => {
    const fields = fieldsOf(schemaOf(resource), kind);
    const inItems = fields.filter(([path, field]) => /\.spec\..*\[\]/.test(path) && field.default !== undefined);
    expect(inItems.map(([path]) => path)).toEqual([]);
  },
);

// kubectl and Helm read YAML 1.1, to which these words are booleans and null: a field `on:` would arrive as `true`.
test.each(CUSTOM_RESOURCES.map((resource) => [resource.kind, resource] as const))(
  'no field of %s has a name that YAML reads as another value',
  (kind, resource) => {
    const words = /\.(?:y|n|yes|no|on|off|true|false|null|~)$/i;
    const fields = fieldsOf(schemaOf(resource), kind);
    expect(fields.map(([path]) => path).filter((path) => words.test(path))).toEqual([]);
  },
);
