// What the server says and takes, as its schemas have it: the page and the command line read it here. Only types, of which
// nothing is left in their programs.
import type { infer as Of } from 'zod';
import type { eventListSchema } from '../http/features/events/schema.ts';
import type { logSchema } from '../http/features/logs/schema.ts';
import type { linkSchema } from '../http/features/ports/schema.ts';
import type { UsageAnswer } from '../http/features/usage/schema.ts';

export type { FleetGpus, FleetNode, FleetRecord } from '../http/features/fleet/schema.ts';
export type { EventListRecord } from '../http/features/events/schema.ts';
export type { CreateInstance, InstanceRecord, UpdateInstance } from '../http/features/instances/schema.ts';
export type { BudgetRecord, LimitsRecord } from '../http/features/limits/schema.ts';
export type { FoundOffer, OfferRecord } from '../http/features/offers/schema.ts';
export type { MetricsRecord } from '../http/features/metrics/schema.ts';
export type { RegistryRecord } from '../http/features/registries/schema.ts';
export type { SshKeyRecord } from '../http/features/ssh-keys/schema.ts';
export type { TemplateBody, TemplateListItem, TemplateRecord } from '../http/features/templates/schema.ts';
export type { UsageAnswer, UsageQuery } from '../http/features/usage/schema.ts';
export type { CreateWebhook, WebhookRecord, WebhookWithSecret } from '../http/features/webhooks/schema.ts';

/** A list, as far as everybody reads it. */
export interface List<T> {
  data: readonly T[];
}

export type EventRecord = Of<typeof eventListSchema>['data'][number];
export type LogRecord = Of<typeof logSchema>;
export type LinkRecord = Of<typeof linkSchema>;
export type LogLine = LogRecord['data'][number];
/** What was used, of GPUs and of models. */
export type UsedAmount = UsageAnswer['totals'][number];
