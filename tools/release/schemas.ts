import { isObject } from '../../src/lib/json.ts';

type Schema = Record<string, unknown>;

const REF = '#/definitions/';

/** Types that Kubernetes writes as a string and reads as a number too, which its OpenAPI does not say. */
function special(name: string): Schema | undefined {
  if (name === 'io.k8s.apimachinery.pkg.util.intstr.IntOrString') return { type: ['string', 'integer'] };
  if (name === 'io.k8s.apimachinery.pkg.api.resource.Quantity') return { type: ['string', 'number'] };
  return undefined;
}

/** Closes every object with known properties, so that a misspelt field, which Kubernetes drops silently, is an error. */
function close(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(close);
  if (!isObject(value)) return value;
  const out = Object.fromEntries(Object.entries(value).map(([key, child]) => [key, close(child)]));
  const open = 'additionalProperties' in out || out['x-kubernetes-preserve-unknown-fields'] === true;
  if (isObject(out['properties']) && !open) out['additionalProperties'] = false;
  return out;
}

interface Kind {
  group: string;
  version: string;
  kind: string;
}

/**
 * The name under which kubeconform looks for a kind, given `{{.ResourceKind}}_{{.Group}}_{{.ResourceAPIVersion}}.json`.
 * Kubeconform takes for the group what stands before the slash of `apiVersion`: in the core group, the version.
 */
function fileName({ group, version, kind }: Kind): string {
  return `${kind.toLowerCase()}_${group || version}_${version}.json`;
}

/**
 * Schemas of the built-in kinds, from the API server's OpenAPI 2 (`swagger.json`): one file of shared definitions and
 * one small file per kind that points into it.
 */
export function builtInSchemas(swagger: { definitions: Record<string, Schema> }): Map<string, unknown> {
  const files = new Map<string, unknown>();
  const definitions: Record<string, unknown> = {};
  for (const [name, definition] of Object.entries(swagger.definitions)) {
    definitions[name] = special(name) ?? close(definition);
    for (const kind of (definition['x-kubernetes-group-version-kind'] as Kind[] | undefined) ?? []) {
      files.set(fileName(kind), { $ref: `definitions.json${REF}${name}` });
    }
  }
  return files.set('definitions.json', { definitions });
}

interface Definition {
  spec: {
    group: string;
    names: { kind: string };
    versions: { name: string; schema: { openAPIV3Schema: Schema } }[];
  };
}

/** Schemas of the kinds that a CustomResourceDefinition declares. */
export function customSchemas(definition: Definition): Map<string, unknown> {
  const { group, names, versions } = definition.spec;
  return new Map(
    versions.map(({ name: version, schema }) => {
      const closed = close(schema.openAPIV3Schema) as Schema & { properties: Schema };
      const metadata = { $ref: `definitions.json${REF}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta` };
      const properties = { ...closed.properties, metadata };
      return [fileName({ group, version, kind: names.kind }), { ...closed, properties }];
    }),
  );
}
