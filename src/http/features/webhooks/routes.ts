import type { Request } from 'express';
import type { Principal } from '../../../access/principal.ts';
import type { KubeClient } from '../../../kube/client/client.ts';
import { findObject } from '../../../kube/client/find-object.ts';
import { ConflictError, NotFoundError } from '../../../kube/errors.ts';
import { keyOf } from '../../../kube/types.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import { signingSecret } from '../../../resources/webhook-signing.ts';
import { type Webhook, WEBHOOKS, type WebhookSpec } from '../../../resources/webhook.ts';
import { ApiError } from '../../interface/errors/api-error.ts';
import type { ObjectNames } from '../../interface/idempotency.ts';
import { byAge, createOnce } from '../../interface/objects.ts';
import { route, routeWithBody } from '../../interface/route.ts';
import { sendJson, sendList } from '../../interface/send.ts';
import { toWebhookRecord } from './record.ts';
import {
  type CreateWebhook,
  createWebhookSchema,
  deletedWebhookSchema,
  webhookListSchema,
  webhookSchema,
  webhookWithSecretSchema,
} from './schema.ts';

export interface WebhookParts {
  store: ReadStore<Webhook>;
  /** 32 bytes, from which signing secrets are derived. Rejects with NotFoundError while there is none. */
  key: () => Promise<Buffer>;
}

export interface WebhooksContext {
  client: KubeClient;
  idempotentName: ObjectNames;
  /** Undefined where webhooks are off. */
  webhooks?: WebhookParts | undefined;
}

/** A name that Kubernetes allows. The API server is not asked for any other. */
const NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;
const RETRY_SECONDS = 5;
const ROTATE_TRIES = 10;

function toJson(webhook: Webhook, { scopes }: Principal): string {
  return JSON.stringify(toWebhookRecord(webhook, scopes.includes('compute:write')));
}

/** For who has just made the webhook or its secret, and so may write. */
function withSecret(webhook: Webhook, secretKey: Buffer): string {
  return JSON.stringify({ ...toWebhookRecord(webhook, true), secret: signingSecret(secretKey, webhook) });
}

/** Throws 404 where webhooks are off. */
function partsOf({ webhooks }: WebhooksContext): WebhookParts {
  if (webhooks !== undefined) return webhooks;
  const message = 'This installation has no webhooks. The operator can set webhooks.enabled in its chart.';
  throw new ApiError('webhooks_disabled', message);
}

/** Throws 503 before the notifier has made the key. */
async function keyOfSecrets({ key }: WebhookParts): Promise<Buffer> {
  try {
    return await key();
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    const message = 'Nothing was changed. No replica of the notifier has started yet, so there is no signing secret.';
    throw new ApiError('webhooks_unavailable', message, { retryAfterSeconds: RETRY_SECONDS, cause: error });
  }
}

function notFound(): ApiError {
  return new ApiError('webhook_not_found', 'You have no webhook with this id.');
}

/** The webhook that the path names: from the cache, else live, because another replica may have just made it. */
async function webhookOf(context: WebhooksContext, tenant: string, request: Request): Promise<Webhook> {
  const { store } = partsOf(context);
  const name = String(request.params['webhookId']);
  if (!NAME.test(name)) throw notFound();
  const ref = { namespace: tenant, name };
  const found = store.get(keyOf(ref)) ?? (await findObject(context.client, WEBHOOKS, ref));
  if (found === undefined) throw notFound();
  return found;
}

function toSpec({ url, events, name }: CreateWebhook): WebhookSpec {
  return { url, ...(events && { events: [...new Set(events)] }), displayName: name ?? '', secretVersion: 1 };
}

export const webhookRoutes = [
  route({
    method: 'get',
    path: '/webhooks',
    id: 'listWebhooks',
    tag: 'Webhooks',
    scope: 'compute:read',
    summary: 'List your webhooks, oldest first',
    success: { status: 200, schema: webhookListSchema, description: 'All webhooks of the tenant, without secrets.' },
    errors: ['webhooks_disabled'],
    handle(context: WebhooksContext, { response, caller }) {
      const found = partsOf(context).store.by('namespace', caller.namespace).toSorted(byAge);
      sendList(
        response,
        found.map((one) => toJson(one, caller)),
      );
    },
  }),
  routeWithBody({
    method: 'post',
    path: '/webhooks',
    id: 'createWebhook',
    tag: 'Webhooks',
    scope: 'compute:write',
    summary: 'Make a webhook',
    description:
      'It is told of what is recorded from now on, and of the budget of this month. The answer has the signing secret, ' +
      'which no later one has.',
    request: {
      schema: createWebhookSchema,
      required: true,
      examples: {
        all: { summary: 'All events', value: { url: 'https://hooks.example.com/berth' } },
        some: {
          summary: 'When instances become ready, and when money runs out',
          value: {
            url: 'https://hooks.example.com/berth',
            events: ['instance.ready', 'budget.near', 'budget.spent'],
            name: 'billing',
          },
        },
      },
    },
    success: { status: 201, schema: webhookWithSecretSchema, description: 'The new webhook with its signing secret.' },
    idempotent: true,
    links: { getWebhook: 'webhookId', rotateWebhookSecret: 'webhookId', deleteWebhook: 'webhookId' },
    errors: [
      'quota_exceeded',
      'tenant_limit',
      'webhooks_disabled',
      'idempotency_conflict',
      'tenant_unavailable',
      'webhooks_unavailable',
    ],
    async handle(context: WebhooksContext, { response, caller: { namespace }, body, key }) {
      // First, so that no webhook is left whose secret nobody was told.
      const secretKey = await keyOfSecrets(partsOf(context));
      const wanted = { type: WEBHOOKS, prefix: 'w', namespace, spec: toSpec(body), body, key };
      const { object, replayed } = await createOnce(context, wanted);
      if (replayed) response.set('idempotent-replayed', 'true');
      response.status(201).location(`/api/v1/webhooks/${object.metadata.name}`);
      sendJson(response, withSecret(object, secretKey));
    },
  }),
  route({
    method: 'get',
    path: '/webhooks/{webhookId}',
    id: 'getWebhook',
    tag: 'Webhooks',
    scope: 'compute:read',
    summary: 'Read one webhook, and how its deliveries go',
    success: { status: 200, schema: webhookSchema, description: 'The webhook, without its secret.' },
    errors: ['webhooks_disabled', 'webhook_not_found'],
    async handle(context: WebhooksContext, { request, response, caller }) {
      sendJson(response, toJson(await webhookOf(context, caller.namespace, request), caller));
    },
  }),
  route({
    method: 'post',
    path: '/webhooks/{webhookId}/secret',
    id: 'rotateWebhookSecret',
    tag: 'Webhooks',
    scope: 'compute:write',
    summary: 'Replace the signing secret of a webhook',
    description:
      'Deliveries have the new signature within seconds, and none has the old one any more. Deliveries that the target refuses ' +
      'until it knows the new secret is delivered again.',
    success: { status: 200, schema: webhookWithSecretSchema, description: 'The webhook with its new signing secret.' },
    errors: ['webhooks_disabled', 'webhook_not_found', 'webhooks_unavailable'],
    async handle(context: WebhooksContext, { request, response, caller: { namespace } }) {
      const secretKey = await keyOfSecrets(partsOf(context));
      const changed = await rotate(context, namespace, await webhookOf(context, namespace, request));
      sendJson(response, withSecret(changed, secretKey));
    },
  }),
  route({
    method: 'delete',
    path: '/webhooks/{webhookId}',
    id: 'deleteWebhook',
    tag: 'Webhooks',
    scope: 'compute:write',
    summary: 'Delete a webhook',
    description: 'Events that were not delivered yet are dropped.',
    success: { status: 200, schema: deletedWebhookSchema, description: 'The webhook is deleted.' },
    errors: ['webhooks_disabled', 'webhook_not_found'],
    async handle(context: WebhooksContext, { request, response, caller: { namespace } }) {
      const { name, uid } = (await webhookOf(context, namespace, request)).metadata;
      await context.client.delete(WEBHOOKS, { namespace, name }, { ...(uid !== undefined && { uid }) });
      sendJson(response, JSON.stringify({ id: name, object: 'webhook', deleted: true }));
    },
  }),
];

/** Raises the number of the secret, beyond that of any other rotation. */
async function rotate({ client }: WebhooksContext, namespace: string, { metadata }: Webhook): Promise<Webhook> {
  const ref = { namespace, name: metadata.name };
  for (let tries = 1; ; tries += 1) {
    const live = await findObject(client, WEBHOOKS, ref);
    if (live === undefined || live.metadata.uid !== metadata.uid) throw notFound();
    const { resourceVersion } = live.metadata;
    const body = { metadata: { resourceVersion }, spec: { secretVersion: (live.spec.secretVersion ?? 1) + 1 } };
    try {
      return await client.patch(WEBHOOKS, ref, body, { type: 'merge' });
    } catch (error) {
      if (error instanceof NotFoundError) throw notFound();
      // The notifier writes into it too.
      if (!(error instanceof ConflictError) || tries === ROTATE_TRIES) throw error;
    }
  }
}
