import { type Finding, setCondition } from '../../kube/conditions.ts';
import { keyOf } from '../../kube/types.ts';
import { API_KEYS, type ApiKey, type ApiKeyStatus } from '../../resources/api-key.ts';
import type { Result } from '../../runtime/controller.ts';
import { type Source, storeSource } from '../../runtime/source.ts';
import type { StatusRun } from '../status-run.ts';
import type { ControllerStores } from '../stores.ts';
import { patchStatus } from '../write-status.ts';

export function apiKeySources(stores: ControllerStores): Source[] {
  return [storeSource(stores.apiKeys, (key) => [keyOf(key)])];
}

function validity({ spec }: ApiKey, now: number): Finding {
  if (spec.revoked) {
    return { type: 'Ready', status: 'False', reason: 'Revoked', message: 'The key was revoked. Create another one.' };
  }
  if (spec.expiresAt !== undefined && Date.parse(spec.expiresAt) <= now) {
    const message = `The key expired at ${spec.expiresAt}. Create another one.`;
    return { type: 'Ready', status: 'False', reason: 'Expired', message };
  }
  return { type: 'Ready', status: 'True', reason: 'Valid', message: 'The key works.' };
}

/** Status of an API key; what the HTTP interface writes to it is carried over. */
export function apiKeyStatus(key: ApiKey, now: number): ApiKeyStatus {
  const { generation } = key.metadata;
  const conditions = setCondition(key.status?.conditions, validity(key, now), { observedGeneration: generation, now });
  return {
    ...key.status,
    ...(generation !== undefined && { observedGeneration: generation }),
    conditions: conditions as NonNullable<ApiKeyStatus['conditions']>,
  };
}

/** Shows in the status whether a key works. Whether it does is decided where it is used, never by this. */
export async function reconcileApiKey({ deps, key, context }: StatusRun): Promise<Result> {
  const apiKey = deps.stores.apiKeys.get(key);
  if (apiKey === undefined || apiKey.metadata.deletionTimestamp !== undefined) return undefined;
  const now = deps.clock.now();
  await patchStatus(deps.client, API_KEYS, apiKey, { status: apiKeyStatus(apiKey, now), signal: context.signal });
  const expires = Date.parse(apiKey.spec.expiresAt ?? '');
  return !apiKey.spec.revoked && expires > now ? { requeueAfterMs: expires - now } : undefined;
}
