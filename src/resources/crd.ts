import { z } from 'zod';
import { isObject } from '../lib/json.ts';
import { type CustomResource, GROUP, type Rule, VERSION } from './schema.ts';

type Schema = Record<string, unknown>;

const INT64 = 2 ** 31;

function rulesOf(schema: Schema): readonly Rule[] {
  return (schema['x-kubernetes-validations'] as readonly Rule[] | undefined) ?? [];
}

/**
 * JSON Schema as zod writes it -> the structural subset that the API server takes: no `$schema`, no
 * `additionalProperties: false` beside properties, no `propertyNames`, no safe-integer bounds, `const` as `enum`.
 */
function structural(schema: Schema): Schema {
  const { $schema: _schema, propertyNames, additionalProperties, const: constant, ...rest } = schema;
  const out: Schema = { ...rest };
  // A rule says it in words. Beside it, the API server would show the pattern first.
  if (rulesOf(out).some(({ rule }) => rule.startsWith('self.matches('))) delete out['pattern'];
  if (constant !== undefined) out['enum'] = [constant];
  if (out['minimum'] === Number.MIN_SAFE_INTEGER) delete out['minimum'];
  if (out['maximum'] === Number.MAX_SAFE_INTEGER) delete out['maximum'];
  if (out['type'] === 'integer') {
    const maximum = out['maximum'];
    out['format'] = typeof maximum === 'number' && maximum < INT64 ? 'int32' : 'int64';
  }
  if (isObject(out['properties'])) {
    const entries = Object.entries(out['properties']);
    out['properties'] = Object.fromEntries(entries.map(([name, property]) => [name, structural(property as Schema)]));
  } else if (isObject(additionalProperties)) {
    const names = (propertyNames as { enum?: string[] } | undefined)?.enum;
    if (names === undefined) {
      out['additionalProperties'] = structural(additionalProperties);
      out['maxProperties'] ??= 64;
    } else {
      const value = structural(additionalProperties);
      out['properties'] = Object.fromEntries(names.map((name) => [name, value]));
    }
  }
  if (isObject(out['items'])) out['items'] = structural(out['items']);
  return out;
}

/**
 * A spec without defaults in the items of its lists: `kubectl apply`, and Argo CD with it, replaces lists whole, and would
 * find a difference at each default that the API server has filled in. Who reads such a field knows what its absence means.
 */
function withoutItemDefaults(schema: Schema, isInItem = false): Schema {
  const out = { ...schema };
  if (isInItem) delete out['default'];
  if (isObject(out['properties'])) {
    const fields = Object.entries(out['properties']) as [string, Schema][];
    out['properties'] = Object.fromEntries(fields.map(([name, field]) => [name, withoutItemDefaults(field, isInItem)]));
  }
  if (isObject(out['items'])) out['items'] = withoutItemDefaults(out['items'], true);
  return out;
}

function toStructural(schema: z.ZodType): Schema {
  return structural(z.toJSONSchema(schema, { io: 'input', target: 'openapi-3.0', reused: 'inline' }) as Schema);
}

/**
 * A status has one writer, who writes all of it. An atomic status is one entry of managedFields, not one per field: that
 * halves the object, and what a write costs the API server (docs/decisions/0008).
 */
function statusProperty(status: z.ZodType): Schema {
  return { ...toStructural(status), description: 'The observed state.', 'x-kubernetes-map-type': 'atomic' };
}

/** The CustomResourceDefinition of one resource, as `crds/` holds it. */
export function customResourceDefinition(resource: CustomResource): Record<string, unknown> {
  const properties: Record<string, Schema> = {
    apiVersion: { type: 'string', description: 'Version of this schema.' },
    kind: { type: 'string', description: 'Kind of the object.' },
    metadata: { type: 'object' },
    spec: { description: 'The desired state.', ...withoutItemDefaults(toStructural(resource.spec)) },
  };
  if (resource.status) properties['status'] = statusProperty(resource.status);
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${resource.plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: resource.namespaced ? 'Namespaced' : 'Cluster',
      names: {
        kind: resource.kind,
        listKind: `${resource.kind}List`,
        plural: resource.plural,
        singular: resource.kind.toLowerCase(),
        shortNames: resource.shortNames,
        categories: ['berth'],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          ...(resource.status ? { subresources: { status: {} } } : {}),
          additionalPrinterColumns: resource.columns,
          ...(resource.selectable && { selectableFields: resource.selectable.map((jsonPath) => ({ jsonPath })) }),
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description: resource.description,
              required: ['spec'],
              properties,
              ...(resource.rules ? { 'x-kubernetes-validations': resource.rules } : {}),
            },
          },
        },
      ],
    },
  };
}
