import { z } from 'zod';
import { EVENT_TYPE, MAX_TYPES, MAX_URL, TYPE_HINT, URL_HINT, WEBHOOK_URL } from '../../../resources/webhook.ts';
import { deletedOf, LIMITS, listOf, named, textSchema, timeSchema } from '../../interface/schema.ts';

const urlSchema = z
  .string()
  .max(MAX_URL, { abort: true })
  .regex(WEBHOOK_URL, URL_HINT)
  .refine((text) => URL.canParse(text), URL_HINT);
const eventTypeSchema = z.string().regex(EVENT_TYPE, TYPE_HINT);

export const createWebhookSchema = named(
  'CreateWebhook',
  z
    .strictObject({
      url: urlSchema.describe(
        'Where events are delivered: https on port 443 of a public host, or another target that the operator allows.',
      ),
      events: z
        .array(eventTypeSchema)
        .min(1)
        .max(MAX_TYPES)
        .nullish()
        .describe('Types to deliver, for example instance.ready or budget.spent. null: all.'),
      name: textSchema().max(LIMITS.name).nullish().describe('Name for people.'),
    })
    .describe('A webhook to make.'),
);

export const webhookSchema = named(
  'Webhook',
  z
    .object({
      id: z.string(),
      object: z.literal('webhook'),
      url: z
        .string()
        .describe(
          'Where events are delivered. A caller without compute:write sees only the host: the rest may be a password.',
        ),
      events: z.array(z.string()).nullable().describe('Types that are delivered; null: all.'),
      name: z.string(),
      secret_version: z.int().min(1).describe('Number of the signing secret.'),
      delivering: z
        .object({
          status: z.boolean().describe('Whether the target takes events.'),
          reason: z
            .string()
            .describe('Why, in CamelCase: Waiting, Delivered, TargetRefused, TargetNotAllowed or Retrying.'),
          message: z.string().describe('The next step, for people.'),
        })
        .nullable()
        .describe('How the deliveries go; null before the notifier has seen the webhook.'),
      last_delivered_at: timeSchema.nullable().describe('When an event was last delivered.'),
      failed_since: timeSchema.nullable().describe('Since when the target takes no event.'),
      dropped: z.int().min(0).describe('Events that the target did not take for three days.'),
      created_at: timeSchema,
    })
    .describe('A URL that is told what happens.'),
);

export const webhookWithSecretSchema = named(
  'WebhookWithSecret',
  webhookSchema
    .extend({
      secret: z
        .string()
        .describe('The signing secret, which no other answer has: whsec_ and base64, as Standard Webhooks.'),
    })
    .describe('A webhook with its signing secret.'),
);

export const webhookListSchema = named('WebhookList', listOf(webhookSchema));
export const deletedWebhookSchema = named('DeletedWebhook', deletedOf(z.string(), 'webhook'));

export type WebhookRecord = z.infer<typeof webhookSchema>;
export type WebhookWithSecret = z.infer<typeof webhookWithSecretSchema>;
export type CreateWebhook = z.infer<typeof createWebhookSchema>;
