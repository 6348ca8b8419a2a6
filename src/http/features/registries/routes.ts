import type { Stores } from '../../../caches/caches.ts';
import type { KubeClient } from '../../../kube/client/client.ts';
import { findObject } from '../../../kube/client/find-object.ts';
import { keyOf } from '../../../kube/types.ts';
import type { Clock } from '../../../lib/clock.ts';
import {
  REGISTRY_CREDENTIALS,
  REGISTRY_NAME,
  type RegistryCredential,
} from '../../../resources/registry-credential.ts';
import { ApiError } from '../../interface/errors/api-error.ts';
import { byAge } from '../../interface/objects.ts';
import { route, routeWithBody } from '../../interface/route.ts';
import { timeText } from '../../interface/schema.ts';
import { sendJson, sendList } from '../../interface/send.ts';
import {
  createRegistrySchema,
  deletedRegistrySchema,
  registryListSchema,
  type RegistryRecord,
  registrySchema,
} from './schema.ts';
import { storeCredentials } from './secret.ts';

export interface RegistriesContext {
  client: KubeClient;
  clock: Clock;
  stores: Stores<'registries'>;
}

function toJson({ metadata, spec }: RegistryCredential): string {
  const { name, creationTimestamp } = metadata;
  const { server, username } = spec;
  const record: RegistryRecord = {
    id: name,
    object: 'registry',
    name,
    server,
    username,
    created_at: timeText(creationTimestamp),
  };
  return JSON.stringify(record);
}

/** Credentials that were deleted stay until their Secret is gone; nobody uses them any more. */
function isThere({ metadata }: RegistryCredential): boolean {
  return metadata.deletionTimestamp === undefined;
}

async function find({ client, stores }: RegistriesContext, namespace: string, name: string) {
  if (!REGISTRY_NAME.test(name)) return undefined;
  const ref = { namespace, name };
  const found = stores.registries.get(keyOf(ref)) ?? (await findObject(client, REGISTRY_CREDENTIALS, ref));
  return found !== undefined && isThere(found) ? found : undefined;
}

export const registryRoutes = [
  route({
    method: 'get',
    path: '/registries',
    id: 'listRegistries',
    tag: 'Registries',
    scope: 'compute:read',
    summary: 'List your credentials of registries, oldest first',
    success: {
      status: 200,
      schema: registryListSchema,
      description: 'All credentials of the tenant, without passwords.',
    },
    handle({ stores }: RegistriesContext, { response, caller: { namespace } }) {
      sendList(response, stores.registries.by('namespace', namespace).filter(isThere).toSorted(byAge).map(toJson));
    },
  }),
  routeWithBody({
    method: 'post',
    path: '/registries',
    id: 'createRegistry',
    tag: 'Registries',
    scope: 'compute:write',
    summary: 'Register credentials of a registry',
    description:
      'Instances that name them start private images of the registry. The password is in a Secret of your namespace, ' +
      'which nodes read and Berth does not; no answer has it.',
    request: {
      schema: createRegistrySchema,
      required: true,
      examples: {
        ghcr: {
          summary: 'A token of GitHub that may read packages',
          value: { name: 'ghcr', server: 'ghcr.io', username: 'octocat', password: 'ghp_example' },
        },
      },
    },
    success: { status: 201, schema: registrySchema, description: 'The new credentials, without the password.' },
    links: { deleteRegistry: 'registryName' },
    errors: ['quota_exceeded', 'tenant_limit', 'registry_exists', 'tenant_unavailable'],
    async handle(context: RegistriesContext, { response, caller: { namespace }, body }) {
      const created = await storeCredentials(context, namespace, body);
      response.status(201).location(`/api/v1/registries/${created.metadata.name}`);
      sendJson(response, toJson(created));
    },
  }),
  route({
    method: 'delete',
    path: '/registries/{registryName}',
    id: 'deleteRegistry',
    tag: 'Registries',
    scope: 'compute:write',
    summary: 'Delete credentials of a registry',
    description:
      'Running instances keep running. Those that name the credentials cannot start again until others of this name exist.',
    success: { status: 200, schema: deletedRegistrySchema, description: 'The credentials are deleted.' },
    errors: ['registry_not_found'],
    async handle(context: RegistriesContext, { request, response, caller: { namespace } }) {
      const name = String(request.params['registryName']);
      const found = await find(context, namespace, name);
      if (found === undefined) throw new ApiError('registry_not_found', 'No credentials have this name.');
      const { uid } = found.metadata;
      await context.client.delete(REGISTRY_CREDENTIALS, { namespace, name }, { ...(uid !== undefined && { uid }) });
      sendJson(response, JSON.stringify({ id: name, object: 'registry', deleted: true }));
    },
  }),
];
