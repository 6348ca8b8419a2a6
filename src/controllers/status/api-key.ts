import type { Finding } from '../../kube/conditions.ts';
import { API_KEYS, type ApiKey } from '../../resources/api-key.ts';
import { readyStatus, type StatusKind } from './status-controller.ts';
import type { ControllerStores } from '../stores.ts';

function validity({ spec }: ApiKey, now: number): Omit<Finding, 'type'> {
  if (spec.revoked) {
    return { status: 'False', reason: 'Revoked', message: 'The key was revoked. Create another one.' };
  }
  if (spec.expiresAt !== undefined && Date.parse(spec.expiresAt) <= now) {
    return { status: 'False', reason: 'Expired', message: `The key expired at ${spec.expiresAt}. Create another one.` };
  }
  return { status: 'True', reason: 'Valid', message: 'The key works.' };
}

/** Shows whether a key works. Requests do not rely on it: each checks the key itself. */
export function apiKeyStatus({ apiKeys }: ControllerStores): StatusKind<ApiKey> {
  return {
    name: 'apikey',
    type: API_KEYS,
    store: apiKeys,
    // The HTTP interface writes fields of the status too.
    statusOf: (key, now) => ({ ...key.status, ...readyStatus(key, validity(key, now), now) }),
    changesAt: ({ spec }) => (spec.revoked ? NaN : Date.parse(spec.expiresAt ?? '')),
  };
}
