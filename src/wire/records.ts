// What the server says and takes, as its schemas have it: the page and the command line read it here. Only types, of which
// nothing is left in their programs.
import type { infer as Of } from 'zod';
import type { eventListSchema } from '../http/schemas/event.ts';
import type { logSchema } from '../http/schemas/log.ts';
import type { UsageAnswer } from '../http/usage/schema.ts';

export type { FleetGpus, FleetNode, FleetRecord } from '../http/fleet/schema.ts';
export type { EventListRecord } from '../http/schemas/event.ts';
export type { CreateInstance, InstanceRecord, UpdateInstance } from '../http/schemas/instance.ts';
export type { BudgetRecord, LimitsRecord } from '../http/schemas/limits.ts';
export type { FoundOffer, OfferRecord } from '../http/schemas/offer.ts';
export type { RegistryRecord } from '../http/schemas/registry.ts';
export type { SshKeyRecord } from '../http/schemas/ssh-key.ts';
export type { TemplateBody, TemplateListItem, TemplateRecord } from '../http/schemas/template.ts';
export type { UsageAnswer, UsageQuery } from '../http/usage/schema.ts';
export type { CreateWebhook, WebhookRecord, WebhookWithSecret } from '../http/webhooks/schema.ts';

/** A list, as far as everybody reads it. */
export interface List<T> {
  data: readonly T[];
}

export type EventRecord = Of<typeof eventListSchema>['data'][number];
export type LogLine = Of<typeof logSchema>['data'][number];
/** What was used, of GPUs and of models. */
export type UsedAmount = UsageAnswer['totals'][number];
