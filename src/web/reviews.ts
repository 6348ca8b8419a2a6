import { z } from 'zod';
import type { KubeClient } from '../kube/client/client.ts';
import { API_KEYS } from '../resources/api-key.ts';
import { AUDIENCE, isForOthers } from './sign-in-token.ts';

/** A user as TokenReview returns it and SubjectAccessReview takes it. */
export const userSchema = z.object({
  username: z.string(),
  uid: z.string().optional(),
  groups: z.array(z.string()).optional(),
  extra: z.record(z.string(), z.array(z.string())).optional(),
});
export type User = z.infer<typeof userSchema>;

const tokenReviewSchema = z.object({
  status: z.object({
    authenticated: z.boolean().optional(),
    user: z.unknown().optional(),
    audiences: z.array(z.string()).optional(),
  }),
});
const accessReviewSchema = z.object({ status: z.object({ allowed: z.boolean() }) });

/**
 * The user whose token it is, as the cluster says; undefined when the cluster rejects it, and when it is not for the
 * dashboard alone. An API server that ignores audiences returns none.
 */
export async function reviewToken(client: KubeClient, token: string): Promise<User | undefined> {
  if (isForOthers(token)) return undefined;
  const path = '/apis/authentication.k8s.io/v1/tokenreviews';
  const spec = { token, audiences: [AUDIENCE] };
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec };
  const { status } = tokenReviewSchema.parse(await client.raw('POST', path, body));
  const isAccepted = status.authenticated === true && status.audiences?.includes(AUDIENCE) === true;
  return isAccepted ? userSchema.parse(status.user) : undefined;
}

export type KeyVerb = 'list' | 'create' | 'patch';

/** What a user would do: a verb of RBAC on the objects of one kind. */
export interface Access {
  /** By default that of Berth. */
  group?: '';
  resource:
    | 'apikeys'
    | 'gpuinstances'
    | 'gpupools'
    | 'instancehistories'
    | 'instancetemplates'
    | 'nodes'
    | 'pods'
    | 'registrycredentials'
    | 'sshkeys'
    | 'tenantlimits'
    | 'tokenrecords'
    | 'usagerecords'
    | 'webhooks';
  /** Empty: in all namespaces, and objects that have none. */
  namespace: string;
  verb: 'list' | 'create' | 'patch' | 'delete';
}

/** Whether the cluster's RBAC lets the user do this now. */
export async function mayAccess(client: KubeClient, user: User, access: Access): Promise<boolean> {
  const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
  const { username, ...rest } = user;
  const resourceAttributes = { group: API_KEYS.group, ...access };
  const spec = { user: username, ...rest, resourceAttributes };
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
  return accessReviewSchema.parse(await client.raw('POST', path, body)).status.allowed;
}
