import { z } from 'zod';
import { textSchema } from '../http/interface/schema.ts';
import { type ApiKey, SCOPES } from '../resources/api-key.ts';

const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

export const namespaceSchema = z.string().regex(NAMESPACE);

export const createKeySchema = z.strictObject({
  namespace: namespaceSchema,
  name: textSchema().max(128).nullish(),
  scopes: z.array(z.enum(SCOPES)).min(1).max(SCOPES.length),
  expires_at: z.iso.datetime({ offset: true }).nullish(),
});

/** A key as the dashboard shows it: never its token or hash. */
export interface KeyRecord {
  id: string;
  object: 'api_key';
  namespace: string;
  name: string;
  prefix: string;
  scopes: readonly string[];
  state: 'active' | 'expired' | 'revoked';
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
}

export function toKeyRecord({ metadata, spec, status }: ApiKey, now: number): KeyRecord {
  const expired = spec.expiresAt !== undefined && Date.parse(spec.expiresAt) <= now;
  return {
    id: metadata.name,
    object: 'api_key',
    namespace: metadata.namespace ?? '',
    name: spec.displayName ?? '',
    prefix: spec.prefix ?? '',
    scopes: spec.scopes ?? SCOPES,
    state: spec.revoked ? 'revoked' : expired ? 'expired' : 'active',
    created_at: metadata.creationTimestamp ?? '',
    expires_at: spec.expiresAt ?? null,
    last_used_at: status?.lastUsedTime ?? null,
  };
}
