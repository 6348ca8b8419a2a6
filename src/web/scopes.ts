import type { PrincipalScope } from '../access/principal.ts';
import { ApiError } from '../http/interface/errors/api-error.ts';
import type { KubeClient } from '../kube/client/client.ts';
import { type Access, mayAccess, type User } from './reviews.ts';
import type { WebContext } from './session-routes.ts';

/**
 * How long a person's token is good. Who loses a role has no more calls after that. The API server remembers an answer
 * about an account for 10 s, so an account that ends has none after half a minute.
 */
export const TOKEN_MS = 20_000;

type Wanted = Omit<Access, 'namespace'>;

/**
 * What RBAC must allow for a scope: all that an endpoint of the scope does in the namespace, and in the whole cluster for
 * `fleet:read`. Who may make a key that calls models may call them without one.
 */
export const NEEDS = {
  'compute:read': [
    { resource: 'gpuinstances', verb: 'list' },
    { resource: 'sshkeys', verb: 'list' },
    { resource: 'instancetemplates', verb: 'list' },
    { resource: 'registrycredentials', verb: 'list' },
    { resource: 'instancehistories', verb: 'list' },
    { resource: 'usagerecords', verb: 'list' },
    { resource: 'tokenrecords', verb: 'list' },
  ],
  'compute:write': [
    { resource: 'gpuinstances', verb: 'create' },
    { resource: 'gpuinstances', verb: 'patch' },
    { resource: 'gpuinstances', verb: 'delete' },
    { resource: 'sshkeys', verb: 'create' },
    { resource: 'sshkeys', verb: 'delete' },
    { resource: 'instancetemplates', verb: 'create' },
    { resource: 'instancetemplates', verb: 'patch' },
    { resource: 'instancetemplates', verb: 'delete' },
    { resource: 'registrycredentials', verb: 'delete' },
  ],
  models: [{ resource: 'apikeys', verb: 'create' }],
  'fleet:read': [
    { group: '', resource: 'nodes', verb: 'list' },
    { group: '', resource: 'pods', verb: 'list' },
    { resource: 'gpupools', verb: 'list' },
    { resource: 'gpuinstances', verb: 'list' },
    { resource: 'tenantlimits', verb: 'list' },
  ],
} as const satisfies Record<PrincipalScope, readonly Wanted[]>;

/** What `compute:write` needs beside that where there are webhooks: it shows their URLs whole. */
const WEBHOOK_NEEDS: readonly Wanted[] = [
  { resource: 'webhooks', verb: 'list' },
  { resource: 'webhooks', verb: 'create' },
  { resource: 'webhooks', verb: 'patch' },
  { resource: 'webhooks', verb: 'delete' },
];

/** What SubjectAccessReview takes for all namespaces. */
const EVERYWHERE = '';

async function mayAll(client: KubeClient, user: User, namespace: string, wanted: readonly Wanted[]): Promise<boolean> {
  const answers = await Promise.all(wanted.map((one) => mayAccess(client, user, { ...one, namespace })));
  return answers.every(Boolean);
}

/** Few people may list nodes, so the other questions are asked for these alone. */
async function maySeeFleet(client: KubeClient, user: User): Promise<boolean> {
  const [first, ...others] = NEEDS['fleet:read'];
  return (await mayAll(client, user, EVERYWHERE, [first])) && (await mayAll(client, user, EVERYWHERE, others));
}

/** The scopes that the user's roles in the namespace give. Throws 403 when there is none. */
export async function scopesOf(
  { client, webhooks }: Pick<WebContext, 'client' | 'webhooks'>,
  user: User,
  namespace: string,
): Promise<PrincipalScope[]> {
  const reads = await mayAll(client, user, namespace, NEEDS['compute:read']);
  if (!reads) {
    throw new ApiError(
      'not_allowed',
      `There is no project ${namespace}, or you have no access to it. Ask an administrator of the cluster for a role ` +
        `of Berth there: berth-view to look, berth-edit to rent. You are signed in as ${user.username}.`,
    );
  }
  const [writes, asks, sees] = await Promise.all([
    mayAll(client, user, namespace, [...NEEDS['compute:write'], ...(webhooks ? WEBHOOK_NEEDS : [])]),
    mayAll(client, user, namespace, NEEDS.models),
    maySeeFleet(client, user),
  ]);
  return [
    'compute:read',
    ...(writes ? (['compute:write'] as const) : []),
    ...(asks ? (['models'] as const) : []),
    ...(sees ? (['fleet:read'] as const) : []),
  ];
}

export function tooManyTokens(most: number, seconds: number): ApiError {
  const message = `This sign-in asked for more than ${most} tokens in a minute. Close other tabs of the dashboard, or wait ${seconds} s.`;
  return new ApiError('rate_limit_exceeded', message, { retryAfterSeconds: seconds });
}
