import { z } from 'zod';
import type { KubeObject } from '../kube/types.ts';
import {
  AGE_COLUMN,
  berthType,
  conditionsSchema,
  type CustomResource,
  patterned,
  timeSchema,
  withRules,
} from './schema.ts';

/** Characters of a URL. */
export const MAX_URL = 2048;
/** Types in the list of a webhook. */
export const MAX_TYPES = 64;
/** Events of which a status says that they were delivered, beside all older ones. */
export const MAX_SENT = 128;

/** A type of events: `instance.` or `budget.` and words in lower case. */
export const EVENT_TYPE = /^(instance|budget)\.[a-z0-9_]{1,128}$/;
const LABEL = '[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?';
const LAST_LABEL = '[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const BYTE = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const HOST = `(?:(?:${LABEL}\\.)*${LAST_LABEL}|(?:${BYTE}\\.){3}${BYTE})`;
const PORT = '(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';
/** An absolute URL of a host name or an IPv4 address, without a user, a password or a fragment. */
export const WEBHOOK_URL = new RegExp(`^https?://${HOST}(?::${PORT})?(?:[/?][!"$-;=?-~]*)?$`);

export const URL_HINT =
  'write an absolute URL without user, password and fragment, for example https://example.com/berth';
export const TYPE_HINT = 'write a type such as instance.ready or budget.spent';

export const webhookSpecSchema = withRules(
  z.object({
    url: patterned(z.string().min(1).max(MAX_URL), WEBHOOK_URL, URL_HINT).describe(
      'Where events are delivered: https, on port 443. Within networks that the operator allows also http, and any port.',
    ),
    events: z
      .array(patterned(z.string().max(140), EVENT_TYPE, TYPE_HINT).describe('A type, for example instance.ready.'))
      .min(1)
      .max(MAX_TYPES)
      .optional()
      .describe('Types of events to deliver. Absent: all.'),
    displayName: z.string().max(128).default('').describe('Name for people.'),
    secretVersion: z
      .int()
      .min(1)
      .max(1_000_000_000)
      .default(1)
      .describe('Number of the signing secret. Another number makes another secret.'),
  }),
  {
    rule: 'self.url == oldSelf.url',
    message: 'url cannot change: create another Webhook and delete this one',
    fieldPath: '.url',
  },
  {
    rule: 'has(self.events) == has(oldSelf.events) && (!has(self.events) || self.events == oldSelf.events)',
    message: 'events cannot change: create another Webhook and delete this one',
    fieldPath: '.events',
  },
  {
    rule: 'self.secretVersion >= oldSelf.secretVersion',
    message: 'secretVersion cannot go back: an old secret must not come into use again',
    fieldPath: '.secretVersion',
  },
);

export const cursorSchema = z.object({
  before: z
    .string()
    .max(600)
    .describe('The newest event of which nothing is said by `sent`. It and all older ones are delivered or left out.'),
  sent: z
    .array(z.string().max(32).describe('Id of an event.'))
    .max(MAX_SENT)
    .describe('Ids of delivered events that are newer, oldest first.'),
  last: z.string().max(32).optional().describe('Id of the last delivered event.'),
  budget: z.string().max(32).optional().describe('The month, and the per cent of its budget that was told last.'),
});

export const webhookStatusSchema = z.object({
  observedGeneration: z.int().optional().describe('metadata.generation that the status is for.'),
  conditions: conditionsSchema.optional(),
  cursor: cursorSchema.optional().describe('Up to where events are delivered.'),
  host: z
    .string()
    .optional()
    .describe(
      'The host of the URL, and its port if it names one. The rest may be a password, so lists show only this.',
    ),
  lastDeliveredAt: timeSchema.optional().describe('When an event was last delivered.'),
  failedSince: timeSchema.optional().describe('Since when the target takes no event. Absent while it does.'),
  dropped: z.int().min(0).optional().describe('Events that the target did not take for three days.'),
});

export type WebhookSpec = z.infer<typeof webhookSpecSchema>;
export type WebhookStatus = z.infer<typeof webhookStatusSchema>;
export type Cursor = z.infer<typeof cursorSchema>;
export interface Webhook extends KubeObject {
  spec: WebhookSpec;
  status?: WebhookStatus;
}

export const WEBHOOKS = berthType<Webhook>('Webhook', 'webhooks');

export const webhookResource: CustomResource = {
  ...WEBHOOKS,
  shortNames: ['wh'],
  description: 'A URL that is told what happens to the instances and the budget of its namespace.',
  columns: [
    { name: 'Host', type: 'string', jsonPath: '.status.host' },
    { name: 'Delivering', type: 'string', jsonPath: '.status.conditions[?(@.type=="Delivering")].reason' },
    { name: 'Last', type: 'date', jsonPath: '.status.lastDeliveredAt' },
    { name: 'Dropped', type: 'integer', jsonPath: '.status.dropped' },
    AGE_COLUMN,
  ],
  spec: webhookSpecSchema,
  status: webhookStatusSchema,
};
