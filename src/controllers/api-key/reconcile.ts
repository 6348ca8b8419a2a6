import type { Finding } from '../../kube/conditions.ts';
import { keyOf } from '../../kube/types.ts';
import { API_KEYS, type ApiKey } from '../../resources/api-key.ts';
import type { Result } from '../../runtime/controller.ts';
import { type Source, storeSource } from '../../runtime/source.ts';
import type { StatusRun } from '../common-deps.ts';
import type { ControllerStores } from '../stores.ts';
import { patchStatus, readyStatus } from '../write-status.ts';

export function apiKeySources(stores: ControllerStores): Source[] {
  return [storeSource(stores.apiKeys, (key) => [keyOf(key)])];
}

function validity({ spec }: ApiKey, now: number): Omit<Finding, 'type'> {
  if (spec.revoked) {
    return { status: 'False', reason: 'Revoked', message: 'The key was revoked. Create another one.' };
  }
  if (spec.expiresAt !== undefined && Date.parse(spec.expiresAt) <= now) {
    return { status: 'False', reason: 'Expired', message: `The key expired at ${spec.expiresAt}. Create another one.` };
  }
  return { status: 'True', reason: 'Valid', message: 'The key works.' };
}

/** Shows in the status whether a key works, beside what the HTTP interface writes there. Requests do not rely on it. */
export async function reconcileApiKey({ deps, key, context }: StatusRun): Promise<Result> {
  const apiKey = deps.stores.apiKeys.get(key);
  if (apiKey === undefined || apiKey.metadata.deletionTimestamp !== undefined) return undefined;
  const now = deps.clock.now();
  const status = { ...apiKey.status, ...readyStatus(apiKey, validity(apiKey, now), now) };
  await patchStatus(deps.client, API_KEYS, apiKey, { status, signal: context.signal });
  const expires = Date.parse(apiKey.spec.expiresAt ?? '');
  return !apiKey.spec.revoked && expires > now ? { requeueAfterMs: expires - now } : undefined;
}
