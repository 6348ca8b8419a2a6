import { type Finding, rfc3339, setCondition } from '../kube/conditions.ts';
import type { Cursor, Webhook, WebhookStatus } from '../resources/webhook.ts';
import type { Outcome } from './target.ts';

/** What the notifier knows of one webhook. */
export interface Progress {
  cursor: Cursor;
  /** Milliseconds since the epoch. */
  lastDeliveredAt: number | undefined;
  failedSince: number | undefined;
  dropped: number;
  /** How the last delivery went; undefined before the first. */
  outcome: Outcome | undefined;
}

const UNREACHABLE = {
  timeout: 'It did not answer within 10 seconds. Answer first, and do the work afterwards.',
  certificate: 'Its certificate is not valid for this host. Renew it, with all certificates between it and the root.',
  connection:
    'The connection failed, or the answer was not HTTP. See whether the server runs and is open to this cluster.',
} as const;

// The address that a name has is not told: names inside of the cluster are nobody's business.
const NOT_ALLOWED =
  'Its host has no address that webhooks may lead to. Use an https URL on port 443 of a public host. The operator can allow other networks.';

function findingOf({ outcome, lastDeliveredAt }: Progress): Omit<Finding, 'type'> {
  if (outcome?.kind === 'not_allowed') return { status: 'False', reason: 'TargetNotAllowed', message: NOT_ALLOWED };
  if (outcome?.kind === 'unreachable')
    return { status: 'False', reason: 'Retrying', message: `No delivery. ${UNREACHABLE[outcome.why]}` };
  if (outcome?.kind === 'refused') {
    const message = `The target answered with the status ${outcome.status}. It must answer with 2xx, and verify the signature with the present secret.`;
    return { status: 'False', reason: 'TargetRefused', message };
  }
  if (lastDeliveredAt === undefined) return { status: 'True', reason: 'Waiting', message: 'No event has come yet.' };
  return { status: 'True', reason: 'Delivered', message: 'The target takes events.' };
}

/** What a status says, when the notifier begins to work on the webhook. */
export function progressOf({ status }: Webhook, first: Cursor): Progress {
  const time = (text: string | undefined): number | undefined => (text === undefined ? undefined : Date.parse(text));
  return {
    cursor: status?.cursor ?? first,
    lastDeliveredAt: time(status?.lastDeliveredAt),
    failedSince: time(status?.failedSince),
    dropped: status?.dropped ?? 0,
    outcome: undefined,
  };
}

/** The status to write. `now`: milliseconds since the epoch. */
export function toStatus({ metadata, spec, status }: Webhook, progress: Progress, now: number): WebhookStatus {
  const { cursor, lastDeliveredAt, failedSince, dropped, outcome } = progress;
  const { generation } = metadata;
  const host = URL.parse(spec.url)?.host;
  const context = { observedGeneration: generation, now };
  // After a change of the leader the old one knew best, until something is delivered.
  const isUnknown = outcome === undefined && status?.conditions !== undefined;
  const finding = { type: 'Delivering', ...findingOf(progress) };
  const conditions = isUnknown ? status.conditions : setCondition(status?.conditions, finding, context);
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    conditions: conditions as NonNullable<WebhookStatus['conditions']>,
    ...(host !== undefined && { host }),
    cursor,
    dropped,
    ...(lastDeliveredAt !== undefined && { lastDeliveredAt: rfc3339(lastDeliveredAt) }),
    ...(failedSince !== undefined && { failedSince: rfc3339(failedSince) }),
  };
}
