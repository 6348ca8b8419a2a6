import { Router } from 'express';
import { ApiError } from '../http/interface/errors/api-error.ts';
import { createKey } from '../access/create-key.ts';
import { parseBody } from '../http/interface/validate.ts';
import type { KubeClient } from '../kube/client/client.ts';
import { NotFoundError } from '../kube/errors.ts';
import { quote } from '../lib/quote.ts';
import { API_KEYS } from '../resources/api-key.ts';
import { expiryOf } from './key-life.ts';
import { createKeySchema, namespaceSchema, toKeyRecord } from './key-record.ts';
import { type KeyVerb, mayAccess, type User } from './reviews.ts';
import { limitPerson, requireSession, userOf, type WebContext } from './session-routes.ts';
import { SERVICE_ACCOUNT, Suggestions } from './suggestions.ts';

/** Commands that give a user the right to manage the keys of a namespace, on any cluster. */
export function roleCommands(username: string, namespace: string): string {
  const [, home = '', name = ''] = SERVICE_ACCOUNT.exec(username) ?? [];
  const subject = name === '' ? `--user=${quote(username)}` : `--serviceaccount=${home}:${name}`;
  return (
    `kubectl create role keys -n ${namespace} --verb=list,create,patch --resource=apikeys.berth.dev; ` +
    `kubectl create rolebinding keys -n ${namespace} --role=keys ${subject}`
  );
}

async function authorize(
  client: KubeClient,
  user: User,
  { namespace, verb }: { namespace: string; verb: KeyVerb },
): Promise<void> {
  if (await mayAccess(client, user, { resource: 'apikeys', namespace, verb })) return;
  throw new ApiError(
    'not_allowed',
    `${user.username} may not ${verb} apikeys.berth.dev in ${namespace}. ` +
      `An administrator of the cluster can allow it with Berth's role berth-admin, or with a role of only these verbs: ` +
      roleCommands(user.username, namespace),
  );
}

/** GET and POST /keys, POST /keys/{namespace}/{id}/revoke, and GET /namespaces. */
export function keysRouter(deps: WebContext): Router {
  const { client, stores, clock, keyDays, log, readJson } = deps;
  const router = Router({ caseSensitive: true });
  const suggestions = new Suggestions(deps);
  router.use(requireSession(deps), limitPerson());

  router.get('/namespaces', async (request, response) => {
    response.json({ object: 'list', data: await suggestions.of(userOf(request)) });
  });

  router.get('/keys', async (request, response) => {
    const query = new URL(request.originalUrl, 'http://localhost').searchParams.get('namespace');
    const namespace = parseBody(namespaceSchema, query);
    await authorize(client, userOf(request), { namespace, verb: 'list' });
    const keys = stores.apiKeys.by('namespace', namespace).map((key) => toKeyRecord(key, clock.now()));
    response.json({ object: 'list', data: keys.toSorted((a, b) => (a.created_at < b.created_at ? 1 : -1)) });
  });

  router.post('/keys', readJson, async (request, response) => {
    const { namespace, name, scopes, expires_at } = parseBody(createKeySchema, request.body);
    await authorize(client, userOf(request), { namespace, verb: 'create' });
    const expiresAt = expiryOf(expires_at, keyDays, clock.now());
    const created = await createKey(client, {
      namespace,
      displayName: name ?? '',
      scopes: [...new Set(scopes)],
      ...(expiresAt !== undefined && { expiresAt }),
    });
    log.info({ user: userOf(request).username, namespace, key: created.name }, 'Created an API key');
    response.status(201).json({ ...toKeyRecord(created.key, clock.now()), token: created.token });
  });

  router.post('/keys/:namespace/:id/revoke', async (request, response) => {
    const namespace = parseBody(namespaceSchema, request.params.namespace);
    await authorize(client, userOf(request), { namespace, verb: 'patch' });
    const ref = { namespace, name: request.params.id };
    const key = await client
      .patch(API_KEYS, ref, { spec: { revoked: true } }, { type: 'merge' })
      .catch((error: unknown) => {
        if (error instanceof NotFoundError) throw new ApiError('not_found', 'No key has this id.');
        throw error;
      });
    log.info({ user: userOf(request).username, ...ref }, 'Revoked an API key');
    response.json(toKeyRecord(key, clock.now()));
  });
  return router;
}
