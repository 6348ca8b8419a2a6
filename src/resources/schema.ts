import { z } from 'zod';
import type { KubeObject, ResourceType } from '../kube/types.ts';

/** Group and version of every resource of Berth. */
export const GROUP = 'berth.dev';
export const VERSION = 'v1alpha1';
export const API_VERSION = `${GROUP}/${VERSION}`;

/** A resource of Berth, as the API server routes it. */
export function berthType<T extends KubeObject>(kind: string, plural: string, namespaced = true): ResourceType<T> {
  return { group: GROUP, version: VERSION, kind, plural, namespaced };
}

/** A CEL rule of the CRD. `message` says what to write instead. */
export interface Rule {
  rule: string;
  message: string;
  /** CEL that makes a message with the value in it. */
  messageExpression?: string;
  fieldPath?: string;
}

/** Attaches CEL rules to a schema. The API server evaluates them; zod does not. */
export function withRules<T extends z.ZodType>(schema: T, ...rules: Rule[]): T {
  const earlier = (schema.meta()?.['x-kubernetes-validations'] ?? []) as readonly Rule[];
  return schema.meta({ ...schema.meta(), 'x-kubernetes-validations': [...earlier, ...rules] });
}

/** A text with a pattern. A refusal says what to write and does not show the pattern. */
export function patterned(schema: z.ZodString, pattern: RegExp, hint: string): z.ZodString {
  return withRules(schema.regex(pattern, hint), {
    rule: `self.matches(${JSON.stringify(pattern.source)})`,
    message: hint,
  });
}

/** An amount of money, as `parseMoney` reads it. */
export function amountSchema(description: string, characters = 32): z.ZodString {
  const hint = 'write a decimal amount without a sign and with at most six decimals, for example "12.50"';
  return patterned(z.string().max(characters), /^[0-9]+(\.[0-9]{1,6})?$/, hint).describe(description);
}

/** The name of an object of the cluster: a subdomain of DNS. A refusal says the hint. */
export function objectNameSchema(hint: string): z.ZodString {
  return patterned(z.string().max(253), /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/, hint);
}

/** The name of a RuntimeClass. With any other text the API server would refuse every pod of the instance. */
export function runtimeClassNameSchema(description: string): z.ZodString {
  return objectNameSchema('write the name of a RuntimeClass, for example kata').describe(description);
}

/** A list that server-side apply merges by `keys`. */
export function listMap<T extends z.ZodType>(schema: T, ...keys: string[]): T {
  return schema.meta({
    ...schema.meta(),
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': keys,
  });
}

export const conditionSchema = z
  .object({
    type: z.string().max(316).describe('Name of the condition, unique in the list.'),
    status: z.enum(['True', 'False', 'Unknown']).describe('Whether the condition holds.'),
    observedGeneration: z.int().min(0).optional().describe('metadata.generation that the condition is for.'),
    lastTransitionTime: z.string().meta({ format: 'date-time' }).describe('When status last changed.'),
    reason: z.string().min(1).max(1024).describe('Reason in CamelCase, for programs.'),
    message: z.string().max(32768).describe('Explanation, for people.'),
  })
  .describe('One observation of the state of the object.');

export const conditionsSchema = listMap(
  z.array(conditionSchema).max(24).describe('Observations of the current state. Ready is the summary.'),
  'type',
);

/** A time as metav1.Time writes it. */
export const timeSchema = z.string().meta({ format: 'date-time' });

/**
 * What to write where a value has another type altogether: clients that were written for another service send another
 * form.
 */
export function formed(example: string): { error: z.core.$ZodErrorMap } {
  return { error: ({ code }) => (code === 'invalid_type' ? `expected ${example}` : undefined) };
}

/** Characters of a duration. */
const LONGEST_DURATION = 32;

/** A duration as Go writes it, for example 90m or 1h30m. */
export function durationSchema(description: string): z.ZodString {
  const pattern = /^([0-9]+(\.[0-9]+)?(s|m|h))+$/;
  return patterned(
    z.string(formed('a text such as "12h"')).max(LONGEST_DURATION),
    pattern,
    'write a duration such as 90m, 12h or 1h30m',
  ).describe(description);
}

/** Milliseconds of a Go-style duration of hours, minutes and seconds. Throws RangeError on any other text. */
export function parseDuration(text: string): number {
  if (text.length > LONGEST_DURATION) throw new RangeError(`A duration has at most ${LONGEST_DURATION} characters.`);
  const unit = { h: 3_600_000, m: 60_000, s: 1000 } as const;
  let total = 0;
  let rest = text;
  for (let match = /^(\d+(?:\.\d+)?)([hms])/.exec(rest); match; match = /^(\d+(?:\.\d+)?)([hms])/.exec(rest)) {
    total += Number(match[1]) * unit[match[2] as keyof typeof unit];
    rest = rest.slice(match[0].length);
  }
  if (rest !== '' || text === '') throw new RangeError(`"${text}" is not a duration: write for example 90m or 1h30m`);
  return total;
}

/** The columns of `kubectl get`. */
export interface PrinterColumn {
  name: string;
  type: 'string' | 'integer' | 'date' | 'boolean' | 'number';
  jsonPath: string;
  priority?: number;
}

/** All that a CustomResourceDefinition is made from. */
export interface CustomResource extends ResourceType {
  shortNames: string[];
  description: string;
  columns: PrinterColumn[];
  /** Fields that `kubectl get --field-selector` and watches can select by, on Kubernetes 1.31 and newer. */
  selectable?: string[];
  spec: z.ZodType;
  status?: z.ZodType;
  rules?: Rule[];
}

export const AGE_COLUMN: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };
