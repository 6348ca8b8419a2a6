import type { KubeClient } from '../../../kube/client/client.ts';
import { AlreadyExistsError, ForbiddenError, isNamespaceTerminating, isPolicyRefusal } from '../../../kube/errors.ts';
import { type Secret, SECRETS } from '../../../kube/types.ts';
import type { Clock } from '../../../lib/clock.ts';
import {
  REGISTRY_CREDENTIALS,
  REGISTRY_LABEL,
  type RegistryCredential,
} from '../../../resources/registry-credential.ts';
import { API_VERSION } from '../../../resources/schema.ts';
import { ApiError } from '../../interface/errors/api-error.ts';
import type { CreateRegistry } from './schema.ts';

/** How often, and milliseconds between: for the garbage collector to remove the Secret of earlier credentials. */
const TRIES = 10;
const WAIT_MS = 300;

/** The names of Docker Hub, and the one under which Docker and the kubelet look up its credentials. */
const DOCKER_HUB = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io']);
const DOCKER_HUB_KEY = 'https://index.docker.io/v1/';

/** The Secret as the kubelet reads it. It goes with the record that owns it. */
export function registrySecret(record: RegistryCredential, { server, username, password }: CreateRegistry): Secret {
  const { name, namespace, uid = '' } = record.metadata;
  const auth = Buffer.from(`${username}:${password}`).toString('base64');
  const auths = { [DOCKER_HUB.has(server) ? DOCKER_HUB_KEY : server]: { username, password, auth } };
  return {
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      labels: { [REGISTRY_LABEL]: name },
      ownerReferences: [{ apiVersion: API_VERSION, kind: REGISTRY_CREDENTIALS.kind, name, uid }],
    },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(JSON.stringify({ auths })).toString('base64') },
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
  const wanted: RegistryCredential = { metadata: { namespace, name }, spec: { server, username } };
  const record = await client.create(REGISTRY_CREDENTIALS, wanted).catch((error: unknown) => {
    if (error instanceof AlreadyExistsError) throw taken(`Credentials of the name ${name} exist. Delete them first.`);
    throw error;
  });
  try {
    await createSecret({ client, clock }, registrySecret(record, body));
    return record;
  } catch (error) {
    const { uid } = record.metadata;
    await client.delete(REGISTRY_CREDENTIALS, { namespace, name }, { ...(uid !== undefined && { uid }) });
    throw error;
  }
}

async function createSecret({ client, clock }: StoreDeps, secret: Secret): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await client.create(SECRETS, secret);
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

function taken(message: string): ApiError {
  return new ApiError('registry_exists', message);
}
