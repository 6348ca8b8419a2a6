import { z } from 'zod';
import type { KubeClient } from '../kube/client/client.ts';
import { API_KEYS } from '../resources/api-key.ts';
import { type User, userSchema } from './session.ts';

const tokenReviewSchema = z.object({
  status: z.object({ authenticated: z.boolean().optional(), user: z.unknown() }),
});
const accessReviewSchema = z.object({ status: z.object({ allowed: z.boolean() }) });

/** The user whose token it is, as the cluster says; undefined when the cluster rejects it. */
export async function reviewToken(client: KubeClient, token: string): Promise<User | undefined> {
  const path = '/apis/authentication.k8s.io/v1/tokenreviews';
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } };
  const { status } = tokenReviewSchema.parse(await client.raw('POST', path, body));
  return status.authenticated === true ? userSchema.parse(status.user) : undefined;
}

export type KeyVerb = 'list' | 'create' | 'patch';

/** Whether the cluster's RBAC lets the user do this with the APIKeys of the namespace now. */
export async function mayManageKeys(
  client: KubeClient,
  user: User,
  access: { namespace: string; verb: KeyVerb },
): Promise<boolean> {
  const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
  const { username, ...rest } = user;
  const resourceAttributes = { group: API_KEYS.group, resource: API_KEYS.plural, ...access };
  const spec = { user: username, ...rest, resourceAttributes };
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
  return accessReviewSchema.parse(await client.raw('POST', path, body)).status.allowed;
}

/** When a token expires, in ms since the epoch; undefined when it does not say. The cluster has checked it before. */
export function tokenExpiry(token: string): number | undefined {
  const claims = token.split('.')[1];
  if (claims === undefined) return undefined;
  try {
    const { exp } = z.object({ exp: z.number() }).parse(JSON.parse(Buffer.from(claims, 'base64url').toString('utf8')));
    return exp * 1000;
  } catch {
    return undefined;
  }
}
