import { customResourceDefinition } from '../../../src/resources/crd.ts';
import { CUSTOM_RESOURCES } from '../../../src/resources/index.ts';
import { DEVICE_CLASSES, DEVICE_TAINT_RULES, RESOURCE_CLAIMS, RESOURCE_SLICES } from '../../../src/kube/devices.ts';
import {
  EVENTS,
  LEASES,
  NAMESPACES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  PRIORITY_CLASSES,
  RESOURCE_QUOTAS,
  type ResourceType,
  SECRETS,
  STORAGE_CLASSES,
} from '../../../src/kube/types.ts';
import { isObject, type Json } from '../../../src/lib/json.ts';

/** The structural schema of a custom resource, as far as the model knows it: defaults, and what is pruned. */
export interface Schema {
  type?: string;
  default?: unknown;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  'x-kubernetes-list-map-keys'?: readonly string[];
  'x-kubernetes-map-type'?: 'atomic' | 'granular';
  'x-kubernetes-patch-strategy'?: 'merge';
  'x-kubernetes-patch-merge-key'?: string;
}

/** What the API server knows of a kind. */
export interface Kind {
  type: ResourceType;
  /** Absent for kinds of Kubernetes itself, of which nothing is defaulted or pruned. */
  schema?: Schema;
  /** How its fields are owned, and how its lists are merged. */
  fields: Schema;
  /** Whether it has a status of its own, which only writes to its subresource change. */
  hasStatus: boolean;
  isCustom: boolean;
  /** Whether a PUT makes an object that is not there. */
  isMadeByUpdate?: boolean;
  /** Whether what a write leaves must say which version it replaces. */
  needsVersion?: boolean;
}

function isWithStatus(definition: Json): boolean {
  const { versions } = definition['spec'] as { versions: { subresources?: { status?: object } }[] };
  return versions[0]?.subresources?.status !== undefined;
}

function schemaOf(definition: Json): Schema {
  const { versions } = definition['spec'] as { versions: { schema: { openAPIV3Schema: Schema } }[] };
  return versions[0]?.schema.openAPIV3Schema ?? {};
}

const TEXTS: Schema = { additionalProperties: {} };

/** A list of which each item has a key. */
function listBy(key: string, items: Schema = {}): Schema {
  return {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': [key],
    'x-kubernetes-patch-strategy': 'merge',
    'x-kubernetes-patch-merge-key': key,
    items,
  };
}

const META: Schema = {
  properties: {
    labels: TEXTS,
    annotations: TEXTS,
    finalizers: { 'x-kubernetes-list-type': 'set', 'x-kubernetes-patch-strategy': 'merge' },
    ownerReferences: listBy('uid', { 'x-kubernetes-map-type': 'atomic' }),
  },
};
const CONDITIONS: Schema = { properties: { conditions: listBy('type') } };

/** Lists and maps of built-in kinds. How other fields are owned shows in their values. */
const FIELDS_OF: Readonly<Record<string, Record<string, Schema>>> = {
  Pod: {
    spec: {
      properties: {
        containers: listBy('name', { properties: { env: listBy('name') } }),
        volumes: listBy('name'),
        imagePullSecrets: listBy('name'),
      },
    },
    status: CONDITIONS,
  },
  Node: {
    spec: {
      properties: { taints: { 'x-kubernetes-patch-strategy': 'merge', 'x-kubernetes-patch-merge-key': 'key' } },
    },
    status: CONDITIONS,
  },
  Namespace: { status: CONDITIONS },
  PersistentVolumeClaim: { status: CONDITIONS },
  Secret: { data: TEXTS },
};

function withMeta(properties: Record<string, Schema>): Schema {
  return { properties: { apiVersion: {}, kind: {}, spec: {}, status: {}, ...properties, metadata: META } };
}

const BUILT_IN: readonly (readonly [ResourceType, boolean])[] = [
  [PODS, true],
  [NODES, true],
  [NAMESPACES, true],
  [RESOURCE_QUOTAS, true],
  [PERSISTENT_VOLUME_CLAIMS, true],
  [PERSISTENT_VOLUMES, true],
  [STORAGE_CLASSES, false],
  [PRIORITY_CLASSES, false],
  [SECRETS, false],
  [EVENTS, false],
  [LEASES, false],
];

/** Those of Dynamic Resource Allocation, which not every cluster serves. */
const OF_DEVICES: readonly (readonly [ResourceType, boolean])[] = [
  [RESOURCE_SLICES, false],
  [RESOURCE_CLAIMS, true],
  [DEVICE_CLASSES, false],
  [DEVICE_TAINT_RULES, true],
];

function builtIn([type, hasStatus]: readonly [ResourceType, boolean]): Kind {
  const isMadeByUpdate = type === LEASES || type === EVENTS;
  const fields = withMeta(FIELDS_OF[type.kind] ?? {});
  return { type, fields, hasStatus, isCustom: false, isMadeByUpdate, needsVersion: type === LEASES };
}

export const DEVICE_KINDS: readonly Kind[] = OF_DEVICES.map(builtIn);

export const KINDS: readonly Kind[] = [
  ...BUILT_IN.map(builtIn),
  ...CUSTOM_RESOURCES.map((resource): Kind => {
    const definition = customResourceDefinition(resource) as Json;
    const { group, version, kind, plural, namespaced } = resource;
    const type = { group, version, kind, plural, namespaced };
    const schema = schemaOf(definition);
    const fields = withMeta(schema.properties ?? {});
    return { type, schema, fields, hasStatus: isWithStatus(definition), isCustom: true };
  }),
];

const FIELDS = new WeakMap<Schema, readonly (readonly [string, Schema])[]>();

function fieldsOf(schema: Schema): readonly (readonly [string, Schema])[] | undefined {
  const { properties } = schema;
  if (properties === undefined) return undefined;
  let fields = FIELDS.get(schema);
  if (fields === undefined) FIELDS.set(schema, (fields = Object.entries(properties)));
  return fields;
}

/** The value with the defaults of its schema, and without fields that the schema does not know. */
export function structured(value: unknown, schema: Schema): unknown {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? value : value.map((item) => structured(item, items));
  }
  if (!isObject(value)) return value;
  const { additionalProperties } = schema;
  const fields = fieldsOf(schema);
  if (fields === undefined) {
    if (!isObject(additionalProperties)) return value;
    const inner = additionalProperties as Schema;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, structured(item, inner)]));
  }
  const result: Json = {};
  for (const [name, inner] of fields) {
    const given = value[name];
    if (given !== undefined) result[name] = structured(given, inner);
    else if (inner.default !== undefined) result[name] = structured(structuredClone(inner.default), inner);
  }
  return result;
}
