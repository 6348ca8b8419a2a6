import { z } from 'zod';
import type { KubeObject, ObjectRef } from '../kube/types.ts';
import { AGE_COLUMN, berthType, type CustomResource, timeSchema } from './schema.ts';

/** Entries of one history. The oldest give way. */
export const MAX_ENTRIES = 100;
/** Characters of a message. */
export const MAX_MESSAGE = 512;

/** Label: the name of the instance. */
export const HISTORY_OF = 'berth.dev/instance';
/** Annotation: the facts that the history has, hashed, so that a list of metadata says which instances have new ones. */
export const FACTS = 'berth.dev/facts';
/** Annotation: when the instance was gone, RFC 3339. */
export const ENDED_AT = 'berth.dev/ended-at';

const entrySchema = z
  .object({
    at: timeSchema.describe('When it happened, or happened first.'),
    recordedAt: timeSchema
      .optional()
      .describe('When the controller noted that it happened, or happened again. Webhooks are told in this order.'),
    lastAt: timeSchema.optional().describe('When it happened last, where it happened more than once.'),
    type: z.enum(['Normal', 'Warning']).describe('Warning: the instance could not continue.'),
    reason: z.string().min(1).max(128).describe('The kind of the event, in CamelCase.'),
    message: z.string().max(MAX_MESSAGE).describe('Explanation, for people.'),
    count: z.int().min(1).describe('How often it happened.'),
    start: z.int().min(0).describe('Number of the start that it is about.'),
  })
  .describe('Something that happened to the instance.');

export const instanceHistorySpecSchema = z.object({
  instance: z.string().max(253).describe('metadata.name of the instance.'),
  displayName: z.string().max(253).optional().describe('Name of the instance for people.'),
  instanceUid: z.string().max(64).describe('metadata.uid of the instance.'),
  endedAt: timeSchema.optional().describe('When the instance was gone. The history goes a week later.'),
  dropped: z.int().min(0).describe('Older entries that gave way to newer ones.'),
  entries: z.array(entrySchema).max(MAX_ENTRIES).describe('The events, oldest first.'),
});

export type HistoryEntry = z.infer<typeof entrySchema>;
export type InstanceHistorySpec = z.infer<typeof instanceHistorySpecSchema>;
export interface InstanceHistory extends KubeObject {
  spec: InstanceHistorySpec;
}

export const INSTANCE_HISTORIES = berthType<InstanceHistory>('InstanceHistory', 'instancehistories');

/** The name of the history of an instance: an instance of the same name later has another. */
export function historyName(uid: string): string {
  return `h-${uid}`;
}

export function historyRef({ metadata: { namespace, uid = '' } }: Pick<KubeObject, 'metadata'>): ObjectRef {
  return { namespace, name: historyName(uid) };
}

export const instanceHistoryResource: CustomResource = {
  ...INSTANCE_HISTORIES,
  shortNames: ['history'],
  description: 'The history of one instance. It stays for a week after the instance is gone.',
  columns: [
    { name: 'Instance', type: 'string', jsonPath: '.spec.instance' },
    { name: 'Last', type: 'string', jsonPath: '.spec.entries[-1:].reason' },
    { name: 'Ended', type: 'date', jsonPath: '.spec.endedAt' },
    AGE_COLUMN,
  ],
  spec: instanceHistorySpecSchema,
};

/** One event of an instance, as the HTTP interface and webhooks show it. */
export function toEventRecord({ at, lastAt, type, reason, message, count, start }: HistoryEntry) {
  return {
    at,
    last_at: lastAt ?? null,
    type: type === 'Warning' ? ('warning' as const) : ('normal' as const),
    reason,
    message,
    count,
    start,
  };
}
