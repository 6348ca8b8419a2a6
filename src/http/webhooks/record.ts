import { findCondition } from '../../kube/conditions.ts';
import type { Webhook } from '../../resources/webhooks/webhook.ts';
import { timeText } from '../schemas/common.ts';
import type { WebhookRecord } from './schema.ts';

export function toWebhookRecord({ metadata, spec, status }: Webhook): WebhookRecord {
  const condition = findCondition(status?.conditions, 'Delivering');
  return {
    id: metadata.name,
    object: 'webhook',
    url: spec.url,
    events: spec.events ?? null,
    name: spec.displayName ?? '',
    secret_version: spec.secretVersion ?? 1,
    delivering: condition
      ? { status: condition.status === 'True', reason: condition.reason, message: condition.message }
      : null,
    last_delivered_at: status?.lastDeliveredAt ?? null,
    failed_since: status?.failedSince ?? null,
    dropped: status?.dropped ?? 0,
    created_at: timeText(metadata.creationTimestamp),
  };
}
