import { customResourceDefinition } from '../../../src/resources/crd.ts';
import { type GpuInstance, gpuInstanceResource } from '../../../src/resources/instances/gpu-instance.ts';
import type { Pod } from '../../../src/kube/types.ts';

/** One field of a spec and a value to give it. */
export interface Mutation {
  field: string;
  value: unknown;
}

interface Schema {
  type?: string;
  enum?: string[];
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  maxItems?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
}

/** Tests of other kinds move these: what runs, or for how long. */
const LEFT_OUT = new Set(['powerState']);

/** Texts that fit some patterns and break others; the API server says which. */
const TEXTS = ['', 'x', 'a b', 'line\nfeed', 'debian:12', '7h', '-1h', 'ZZZ', '../..', '$(HOME)'];
const LONG = 100_000;

function texts({ enum: names, maxLength = LONG }: Schema): unknown[] {
  if (names !== undefined) return [...names, 'Nonsense', ''];
  return [...TEXTS, 'x'.repeat(maxLength), 'x'.repeat(maxLength + 1)];
}

function numbers({ minimum = -1, maximum = 2 ** 31 }: Schema): unknown[] {
  return [minimum, maximum, minimum - 1, maximum + 1, 7, 0, 1.5];
}

function objects({ properties = {} }: Schema): unknown[] {
  const valid = Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, ordinary(schema)]));
  const broken = Object.entries(properties).flatMap(([name, schema]) =>
    valuesOf(schema).map((value) => ({ ...valid, [name]: value })),
  );
  return [{}, valid, ...broken];
}

/** A value that a user might well write. */
function ordinary(schema: Schema): unknown {
  if (schema.enum !== undefined) return schema.enum[0];
  if (schema.type === 'string') return 'word';
  if (schema.type === 'boolean') return true;
  if (schema.type === 'integer' || schema.type === 'number') return Math.max(schema.minimum ?? 1, 8080);
  return {};
}

function lists({ items = {}, maxItems = 100 }: Schema): unknown[] {
  const values = valuesOf(items);
  const one = ordinary(items);
  const repeated = [one, one];
  return [[], ...values.map((value) => [value]), repeated, Array.from({ length: maxItems + 1 }, () => one)];
}

function valuesOf(schema: Schema): unknown[] {
  if (schema.type === 'string') return texts(schema);
  if (schema.type === 'boolean') return [true, false];
  if (schema.type === 'integer' || schema.type === 'number') return numbers(schema);
  if (schema.type === 'array') return lists(schema);
  return objects(schema);
}

/** Every field of the spec of an instance with values inside, at and beyond its bounds, read from the CRD. */
export function instanceMutations(): Mutation[] {
  const definition = customResourceDefinition(gpuInstanceResource) as {
    spec: { versions: { schema: { openAPIV3Schema: { properties: { spec: Schema } } } }[] };
  };
  const properties = definition.spec.versions[0]?.schema.openAPIV3Schema.properties.spec.properties ?? {};
  return Object.entries(properties)
    .filter(([field]) => !LEFT_OUT.has(field))
    .flatMap(([field, schema]) => valuesOf(schema).map((value) => ({ field, value })));
}

/** What a pod was made from the spec, without what is different for each pod. */
export function essence(pod: Pod | undefined, { metadata }: GpuInstance): unknown {
  if (pod === undefined) return undefined;
  const [main] = pod.spec?.containers ?? [];
  const text = JSON.stringify({
    image: main?.image,
    command: main?.command,
    args: main?.args,
    env: main?.env?.filter(({ name }) => name !== 'BERTH_NODE'),
    ports: main?.ports,
    resources: main?.resources,
    hostUsers: pod.spec?.hostUsers,
    runtimeClassName: pod.spec?.runtimeClassName,
    priorityClassName: pod.spec?.priorityClassName,
    init: pod.spec?.initContainers?.length,
  });
  return text.replaceAll(metadata.name, 'NAME');
}
