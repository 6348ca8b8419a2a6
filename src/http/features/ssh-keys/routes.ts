import type { Stores } from '../../../caches/caches.ts';
import type { KubeClient } from '../../../kube/client/client.ts';
import type { InTurn } from '../../../lib/in-turn.ts';
import { SSH_KEYS, type SshKey, sshKeyId } from '../../../resources/ssh-key.ts';
import { parseSshPublicKey } from '../../../resources/ssh-public-key.ts';
import { ApiError, validationFailed } from '../../interface/errors/api-error.ts';
import type { ObjectNames } from '../../interface/idempotency.ts';
import type { ListPaces } from '../../interface/list-paces.ts';
import { byAge, createOnce, numericIdIn } from '../../interface/objects.ts';
import { route, routeWithBody } from '../../interface/route.ts';
import { sendJson, sendList } from '../../interface/send.ts';
import { findSshKeys } from '../instances/find.ts';
import { toSshKeyRecord } from './record.ts';
import { createSshKeySchema, deletedSshKeySchema, sshKeyListSchema, sshKeySchema } from './schema.ts';

export interface SshKeysContext {
  client: KubeClient;
  idempotentName: ObjectNames;
  stores: Stores<'instances' | 'sshKeys'>;
  listPaces: ListPaces;
  liveLooks: InTurn;
}

function toJson(key: SshKey): string {
  return JSON.stringify(toSshKeyRecord(key));
}

/** The key as one line without space around it; throws 422 when it is no public key. */
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

export const sshKeyRoutes = [
  route({
    method: 'get',
    path: '/ssh-keys',
    id: 'listSSHKeys',
    tag: 'SSH keys',
    scope: 'compute:read',
    summary: 'List your SSH keys, oldest first',
    success: { status: 200, schema: sshKeyListSchema, description: 'All SSH keys of the tenant.' },
    handle({ stores, listPaces }: SshKeysContext, { response, caller: { namespace } }) {
      const write = () => stores.sshKeys.by('namespace', namespace).toSorted(byAge).map(toJson);
      sendList(response, listPaces.take(namespace, write));
    },
  }),
  routeWithBody({
    method: 'post',
    path: '/ssh-keys',
    id: 'createSSHKey',
    tag: 'SSH keys',
    scope: 'compute:write',
    summary: 'Register an SSH public key',
    description:
      'Within seconds it opens the instances that name it and those that name no key. They need not restart.',
    request: {
      schema: createSshKeySchema,
      required: true,
      examples: {
        ed25519: {
          summary: 'The content of ~/.ssh/id_ed25519.pub',
          value: {
            name: 'laptop',
            public_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@laptop',
          },
        },
      },
    },
    success: { status: 201, schema: sshKeySchema, description: 'The new SSH key.' },
    idempotent: true,
    links: { deleteSSHKey: 'sshKeyId' },
    errors: ['quota_exceeded', 'tenant_limit', 'idempotency_conflict', 'tenant_unavailable'],
    async handle(context: SshKeysContext, { response, caller: { namespace }, body, key }) {
      const spec = { publicKey: parsed(body.public_key), displayName: body.name };
      const wanted = { type: SSH_KEYS, prefix: 'k', namespace, spec, body, key };
      const { object: created, replayed } = await createOnce(context, wanted);
      if (replayed) response.set('idempotent-replayed', 'true');
      response.status(201).location(`/api/v1/ssh-keys/${sshKeyId(created)}`);
      sendJson(response, toJson(created));
    },
  }),
  route({
    method: 'delete',
    path: '/ssh-keys/{sshKeyId}',
    id: 'deleteSSHKey',
    tag: 'SSH keys',
    scope: 'compute:write',
    summary: 'Delete an SSH key and end its sessions',
    success: { status: 200, schema: deletedSshKeySchema, description: 'The SSH key opens no instance any more.' },
    errors: ['ssh_key_not_found'],
    async handle(context: SshKeysContext, { request, response, caller: { namespace } }) {
      const id = numericIdIn(String(request.params['sshKeyId']));
      const key = id === undefined ? undefined : (await findSshKeys(context, namespace, [id])).get(id);
      if (key === undefined) throw new ApiError('ssh_key_not_found', 'No SSH key has this id.');
      const { name, uid } = key.metadata;
      await context.client.delete(SSH_KEYS, { namespace, name }, { ...(uid !== undefined && { uid }) });
      sendJson(response, JSON.stringify({ id, object: 'ssh_key', deleted: true }));
    },
  }),
];
