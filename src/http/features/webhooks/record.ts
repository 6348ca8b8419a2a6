import { findCondition } from '../../../kube/conditions.ts';
import type { Webhook } from '../../../resources/webhook.ts';
import { timeText } from '../../interface/schema.ts';
import type { WebhookRecord } from './schema.ts';

/** What stands in place of the path and the query for a caller who may only read. */
const HIDDEN = '/***';

/** The URL without what may be a password of the target: chat services have no other. */
function withoutPath(url: string): string {
  return `${URL.parse(url)?.origin ?? ''}${HIDDEN}`;
}

/** `mayWrite`: whether the caller may also make webhooks. */
export function toWebhookRecord({ metadata, spec, status }: Webhook, mayWrite: boolean): WebhookRecord {
  const condition = findCondition(status?.conditions, 'Delivering');
  return {
    id: metadata.name,
    object: 'webhook',
    url: mayWrite ? spec.url : withoutPath(spec.url),
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
