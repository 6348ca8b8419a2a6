import { z } from 'zod';
import { compareText } from '../../lib/compare.ts';
import { formed } from '../../resources/schema.ts';

export const timeSchema = z.string().meta({ format: 'date-time', description: 'RFC 3339, UTC.' });

export const moneySchema = z
  .string(formed('a text such as "2.49"'))
  .regex(/^[0-9]+(\.[0-9]+)?$/)
  .describe('Decimal amount, for example "2.49".');

export const isolationSchema = z
  .enum(['whole', 'mig', 'time_sliced'])
  .describe('Whether the GPUs are whole, MIG slices, or time-sliced with other instances.');

/**
 * Text as JSON in UTF-8 can carry it. A JSON escape can also write half of a character, which has no UTF-8: it would be
 * stored as another character.
 */
export function textSchema(): z.ZodString {
  return wellFormed(z.string());
}

/** The text of another schema, where every character is a whole one. */
export function wellFormed(schema: z.ZodString): z.ZodString {
  return schema.refine((text) => text.isWellFormed(), 'expected text without half surrogate pairs');
}

/** Any integer of JSON, also one that a double cannot hold: it is read as the nearest double, or as infinite. */
export const anyIntegerSchema = z
  .unknown()
  .refine((value) => Number.isInteger(value) || value === Infinity || value === -Infinity, 'expected an integer')
  .meta({ type: 'integer' }) as z.ZodType<number>;

/** The answer of every list endpoint. */
export function listOf<T extends z.ZodType>(item: T) {
  return z.object({ object: z.literal('list'), data: z.array(item) });
}

/** The answer of every DELETE. */
export function deletedOf<T extends z.ZodType>(id: T, object: string) {
  return z.object({ id, object: z.literal(object), deleted: z.literal(true) });
}

/** A Kubernetes time as RFC 3339 in UTC; 1970 for an object that was never on a server. */
export function timeText(time: string | Date | undefined): string {
  return typeof time === 'string' ? time : new Date(time ?? 0).toISOString();
}

/** Bounds of the HTTP interface, which its specification leaves open. */
export const LIMITS = {
  name: 128,
  label: 255,
  templateHashId: 64,
  templateImage: 512,
  publicKey: 16_384,
  sshKeyIds: 64,
  diskGb: { min: 1, max: 16_384 },
  offerDiskSpace: { min: 0, max: 1_048_576 },
  idempotencyKey: 255,
  /** Bytes of a JSON body on the compute endpoints. */
  body: 1024 * 1024,
  /** Bytes of a JSON body on the endpoints of the dashboard. A token is the longest thing that they take. */
  dashboardBody: 16 * 1024,
} as const;

const NAMES = z.registry<{ id: string }>();

/** Gives a schema its name in the OpenAPI document, which no other schema may have. */
export function named<S extends z.ZodType>(id: string, schema: S): S {
  NAMES.add(schema, { id });
  return schema;
}

/** The name of a schema that has one. */
export function nameOf(schema: z.ZodType): string {
  const id = NAMES.get(schema)?.id;
  if (id === undefined) throw new Error('A schema of a route has no name for the OpenAPI document.');
  return id;
}

/** Of every named schema, from what validates. A reference to another has `uri`, made from its name. */
export function namedSchemas(uri: (id: string) => string): Record<string, unknown> {
  const { schemas } = z.toJSONSchema(NAMES, {
    io: 'input',
    target: 'draft-2020-12',
    uri,
    // What only the API server reads, of schemas that are the resources' own.
    override: ({ jsonSchema }) => {
      for (const key of Object.keys(jsonSchema)) if (key.startsWith('x-kubernetes-')) delete jsonSchema[key];
    },
  });
  const entries = Object.entries(schemas).map(
    ([id, { $schema: _schema, $id: _id, ...schema }]) => [id, schema] as const,
  );
  return Object.fromEntries(entries.toSorted(([a], [b]) => compareText(a, b)));
}
