import type { CreateOptions, KubeClient } from '../../../kube/client/client.ts';
import { AlreadyExistsError, ForbiddenError, isNamespaceTerminating, isPolicyRefusal } from '../../../kube/errors.ts';
import { findObject } from '../../../kube/client/find-object.ts';
import { type Secret, SECRETS } from '../../../kube/types.ts';
import type { Clock } from '../../../lib/clock.ts';
import { FINALIZER } from '../../../resources/cleanup.ts';
import {
  dockerConfig,
  isDockerHub,
  REGISTRY_CREDENTIALS,
  REGISTRY_LABEL,
  type RegistryCredential,
} from '../../../resources/registry-credential.ts';
import { API_VERSION } from '../../../resources/schema.ts';
import { ApiError } from '../../interface/errors/api-error.ts';
import type { CreateRegistry } from './schema.ts';

/** How often, and milliseconds between: for earlier credentials of the name to go, and their Secret. */
const TRIES = 10;
const WAIT_MS = 300;

/** The name of Docker Hub under which Docker and the kubelet look up its credentials. */
const DOCKER_HUB_KEY = 'https://index.docker.io/v1/';

/** The Secret as the kubelet reads it. It goes with the record that owns it. */
export function registrySecret(record: RegistryCredential, { server, username, password }: CreateRegistry): Secret {
  const { name, namespace, uid = '' } = record.metadata;
  const auth = Buffer.from(`${username}:${password}`).toString('base64');
  const auths = { [isDockerHub(server) ? DOCKER_HUB_KEY : server]: { username, password, auth } };
  return {
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      labels: { [REGISTRY_LABEL]: name },
      ownerReferences: [{ apiVersion: API_VERSION, kind: REGISTRY_CREDENTIALS.kind, name, uid }],
    },
    ...dockerConfig(auths),
  };
}

export interface StoreDeps {
  client: KubeClient;
  clock: Clock;
}

/**
 * Stores credentials: the record, then the Secret that it owns. A crash in between leaves a record without a Secret,
 * which can be deleted. Throws 409 when the name is taken.
 */
export async function storeCredentials(
  { client, clock }: StoreDeps,
  namespace: string,
  body: CreateRegistry,
): Promise<RegistryCredential> {
  const { name, server, username } = body;
  // From the start: credentials that are deleted right away leave no Secret either.
  const metadata = { namespace, name, finalizers: [FINALIZER] };
  const wanted: RegistryCredential = { metadata, spec: { server, username } };
  if (await isThere(client, wanted)) throw exists(name);
  // The controller deletes the Secret that has the name of credentials, so nobody else's may have it. Nothing is stored yet.
  const draft = { ...wanted, metadata: { ...metadata, uid: 'none-yet' } };
  await createSecret({ client, clock }, registrySecret(draft, body), { dryRun: true }).catch(async (error: unknown) => {
    // Theirs, and not another of the tenant.
    if (error instanceof ApiError && error.code === 'registry_exists' && (await isGoing(client, wanted)))
      throw going(name);
    throw error;
  });
  const record = await createRecord({ client, clock }, wanted);
  try {
    await createSecret({ client, clock }, registrySecret(record, body), {});
    return record;
  } catch (error) {
    const { uid } = record.metadata;
    await client.delete(REGISTRY_CREDENTIALS, { namespace, name }, { ...(uid !== undefined && { uid }) });
    throw error;
  }
}

/** Whether there are credentials of this name. Those that were deleted stay until their Secret is gone. */
async function isThere(client: KubeClient, { metadata }: RegistryCredential): Promise<boolean> {
  const held = await findObject(client, REGISTRY_CREDENTIALS, metadata);
  return held !== undefined && held.metadata.deletionTimestamp === undefined;
}

/** Whether credentials of this name were deleted, and no controller has let them go yet. */
async function isGoing(client: KubeClient, { metadata }: RegistryCredential): Promise<boolean> {
  return (await findObject(client, REGISTRY_CREDENTIALS, metadata))?.metadata.deletionTimestamp !== undefined;
}

async function createRecord({ client, clock }: StoreDeps, wanted: RegistryCredential): Promise<RegistryCredential> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await client.create(REGISTRY_CREDENTIALS, wanted);
    } catch (error) {
      if (!(error instanceof AlreadyExistsError)) throw error;
      if (await isThere(client, wanted)) throw exists(wanted.metadata.name);
      if (tries === TRIES) throw going(wanted.metadata.name);
      await clock.sleep(WAIT_MS);
    }
  }
}

async function createSecret({ client, clock }: StoreDeps, secret: Secret, options: CreateOptions): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await client.create(SECRETS, secret, options);
      return;
    } catch (error) {
      if (error instanceof ForbiddenError && !isPolicyRefusal(error) && !isNamespaceTerminating(error)) {
        const message =
          'This installation lets Berth make no Secret: its chart has admissionPolicies.enabled=false. Make the Secret with kubectl.';
        throw new ApiError('quota_exceeded', message, { cause: error });
      }
      if (!(error instanceof AlreadyExistsError)) throw error;
      if (tries === TRIES) {
        throw taken(`A Secret ${secret.metadata.name} exists in the namespace. Delete it, or choose another name.`);
      }
      await clock.sleep(WAIT_MS);
    }
  }
}

function exists(name: string): ApiError {
  return taken(`Credentials of the name ${name} exist. Delete them first.`);
}

function going(name: string): ApiError {
  return taken(
    `Credentials of the name ${name} were deleted, and Berth has not removed what is left of them yet. Try again in a minute.`,
  );
}

function taken(message: string): ApiError {
  return new ApiError('registry_exists', message);
}
