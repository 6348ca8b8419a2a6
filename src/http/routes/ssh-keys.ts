import { randomUUID } from 'node:crypto';
import { Router } from 'express';
import { AlreadyExistsError } from '../../kube/errors.ts';
import { idempotentName } from '../../resources/ids.ts';
import { parseSshPublicKey } from '../../resources/ssh-public-key.ts';
import { SSH_KEYS, type SshKey } from '../../resources/ssh-key.ts';
import { requireScope } from '../auth/middleware.ts';
import { getPrincipal } from '../../access/principal.ts';
import type { ApiContext } from '../context.ts';
import { ApiError, validationFailed } from '../errors/api-error.ts';
import { REQUEST_HASH } from '../instances/annotations.ts';
import { idempotencyConflict, idempotencyKey, requestHash } from '../instances/idempotency.ts';
import { jsonBody } from '../middleware/json-body.ts';
import { parseBody } from '../middleware/validate.ts';
import { type KeyFacts, toSshKeyRecord } from '../records/ssh-key-record.ts';
import { createSshKeySchema } from '../schemas/ssh-key.ts';
import { sendJson, sendList } from '../send.ts';
import { byAge, findSshKeys } from '../tenant.ts';
import { methodNotAllowed } from './method-not-allowed.ts';

const ID = /^[1-9][0-9]{0,15}$/;

/** GET and POST /ssh-keys, DELETE /ssh-keys/{sshKeyId}. */
export function sshKeysRouter(context: ApiContext): Router {
  const { client, stores } = context;
  const router = Router({ caseSensitive: true });
  const read = requireScope('compute:read');
  const write = requireScope('compute:write');

  function factsOf(key: SshKey): KeyFacts | undefined {
    try {
      return parseSshPublicKey(key.spec.publicKey);
    } catch {
      // kubectl can apply a key that is none; its condition says so.
      return undefined;
    }
  }
  const record = (key: SshKey): string => JSON.stringify(toSshKeyRecord(key, factsOf(key)));

  function parsed(text: string): string {
    const line = text.trim();
    try {
      parseSshPublicKey(line);
      return line;
    } catch (error) {
      const expected = error instanceof Error ? error.message : 'expected one line of a .pub file';
      throw validationFailed([{ path: 'public_key', expected }]);
    }
  }

  router.get('/', read, (request, response) => {
    const { namespace } = getPrincipal(request);
    sendList(response, stores.sshKeys.by('namespace', namespace).toSorted(byAge).map(record));
  });

  router.post('/', write, jsonBody, async (request, response) => {
    const { namespace } = getPrincipal(request);
    const idempotency = idempotencyKey(request.headers);
    const body = parseBody(createSshKeySchema, request.body);
    const hash = requestHash(body);
    const name = idempotency === undefined ? `k-${randomUUID()}` : idempotentName('k', namespace, idempotency);
    const wanted: SshKey = {
      metadata: { namespace, name, ...(idempotency !== undefined && { annotations: { [REQUEST_HASH]: hash } }) },
      spec: { publicKey: parsed(body.public_key), displayName: body.name },
    };
    const key = await client.create(SSH_KEYS, wanted).catch(async (error: unknown) => {
      if (!(error instanceof AlreadyExistsError)) throw error;
      const found = await client.get(SSH_KEYS, { namespace, name });
      if (found.metadata.annotations?.[REQUEST_HASH] === hash) return found;
      throw idempotencyConflict('This Idempotency-Key came with another body before. Use a new key.');
    });
    response.status(201).location(`/api/v1/ssh-keys/${toSshKeyRecord(key, undefined).id}`);
    sendJson(response, record(key));
  });

  router.all('/', methodNotAllowed('GET, HEAD, POST'));

  router.delete('/:sshKeyId', write, async (request, response) => {
    const { namespace } = getPrincipal(request);
    const text = String(request.params['sshKeyId']);
    const id = ID.test(text) ? Number(text) : 0;
    const key = id === 0 ? undefined : (await findSshKeys(context, namespace, [id])).get(id);
    if (key === undefined) throw new ApiError('ssh_key_not_found', 'No SSH key has this id.');
    const { name, uid } = key.metadata;
    await client.delete(SSH_KEYS, { namespace, name }, { ...(uid !== undefined && { uid }) });
    sendJson(response, JSON.stringify({ id, object: 'ssh_key', deleted: true }));
  });

  router.all('/:sshKeyId', methodNotAllowed('DELETE'));
  return router;
}
