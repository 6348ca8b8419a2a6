import { hash } from 'node:crypto';
import { Router } from 'express';
import { z } from 'zod';
import type { PrincipalScope } from '../access/principal.ts';
import { personSigningKey, publicPart, signPersonToken } from '../access/person-token.ts';
import { ApiError } from '../http/interface/errors/api-error.ts';
import { parseBody } from '../http/interface/validate.ts';
import type { KubeClient } from '../kube/client/client.ts';
import { namespaceSchema } from './key-record.ts';
import { memoryCounter } from '../runtime/counter.ts';
import { type Access, mayAccess, type User } from './reviews.ts';
import { credentialOf } from './session.ts';
import { requireSession, sessionOver, signInOf, type WebContext } from './session-routes.ts';

/**
 * How long a person's token is good. Who loses a role has no more calls after that. The API server remembers an answer
 * about an account for 10 s, so an account that ends has none after half a minute.
 */
const TOKEN_MS = 20_000;

/** Of one sign-in. A page asks for one every 15 s, for each namespace that it shows, and each costs the API server twenty reviews. */
const TOKENS_PER_MINUTE = 120;

const tokenSchema = z.strictObject({ namespace: namespaceSchema });

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
async function scopesOf({ client, webhooks }: WebContext, user: User, namespace: string): Promise<PrincipalScope[]> {
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

function tooManyTokens(seconds: number): ApiError {
  const message = `This sign-in asked for more than ${TOKENS_PER_MINUTE} tokens in a minute. Close other tabs of the dashboard, or wait ${seconds} s.`;
  return new ApiError('rate_limit_exceeded', message, { retryAfterSeconds: seconds });
}

/** POST /token: what a page calls /api/v1 with. GET /signing-key: what the api role checks such a token with. */
export function tokenRouter(context: WebContext): Router {
  const { clock, readJson, sessionKey, users } = context;
  const router = Router({ caseSensitive: true });
  const asked = memoryCounter();

  router.get('/signing-key', async (_request, response) => {
    response.json(publicPart(personSigningKey(await sessionKey())));
  });

  router.post('/token', requireSession(context), readJson, async (request, response) => {
    const { namespace } = parseBody(tokenSchema, request.body);
    const { session } = signInOf(request);
    const id = hash('sha256', credentialOf(session)).slice(0, 32);
    const { total, resetMs } = await asked.add(id, 1);
    if (total > TOKENS_PER_MINUTE) throw tooManyTokens(Math.ceil(resetMs / 1000));
    // Asked now: what was true some seconds ago would be true for longer than half a minute with a token on top.
    const user = await users.review(session);
    if (user === undefined) throw sessionOver(session);
    const scopes = await scopesOf(context, user, namespace);
    // A token counts in seconds.
    const expires = Math.floor(Math.min(clock.now() + TOKEN_MS, session.expires) / 1000) * 1000;
    const claims = { id, username: user.username, namespace, scopes, expires, until: session.expires };
    const token = await signPersonToken(claims, personSigningKey(await sessionKey()));
    const expires_at = new Date(expires).toISOString();
    response.status(201).json({ object: 'token', namespace, scopes, token, expires_at });
  });
  return router;
}
