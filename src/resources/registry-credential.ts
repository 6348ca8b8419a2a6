import { z } from 'zod';
import type { KubeObject, Secret } from '../kube/types.ts';
import { AGE_COLUMN, berthType, patterned, withRules, type CustomResource } from './schema.ts';

/** Also the name of the Secret: what spec.imagePullSecrets of an instance names. */
export const REGISTRY_NAME = /^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$/;
/** A registry as the name of an image begins with it. */
export const REGISTRY_SERVER = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?$/;

/** The Secret with which instances pull images of Berth, where its chart names imagePullSecrets. No record has this name. */
export const PULL_SECRET = 'berth.image-pull';

/** On the Secrets that Berth makes for tenants. */
export const REGISTRY_LABEL = 'berth.dev/registry';

/** The key of a Secret's data with a file of Docker. */
export const DOCKER_CONFIG = '.dockerconfigjson';

const DOCKER_HUB: ReadonlySet<string> = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io']);

/** Whether a host is Docker Hub, under any of its names. */
export function isDockerHub(host: string): boolean {
  return DOCKER_HUB.has(host);
}

/** What a Secret of credentials is made of, as the kubelet reads it: `auths` by registry or path. */
export function dockerConfig(auths: object): Required<Pick<Secret, 'type' | 'data'>> {
  const text = Buffer.from(JSON.stringify({ auths })).toString('base64');
  return { type: 'kubernetes.io/dockerconfigjson', data: { [DOCKER_CONFIG]: text } };
}

export const registryCredentialSpecSchema = withRules(
  z.object({
    server: patterned(
      z.string().min(1).max(253),
      REGISTRY_SERVER,
      'write the registry as images name it, for example ghcr.io or registry.example:5000',
    ).describe('The registry, as images name it, for example ghcr.io. Docker Hub is docker.io.'),
    username: z.string().min(1).max(255).describe('User of the registry.'),
  }),
  { rule: 'self == oldSelf', message: 'credentials cannot change: delete these and create others' },
);

export interface RegistryCredential extends KubeObject {
  spec: z.infer<typeof registryCredentialSpecSchema>;
}

export const REGISTRY_CREDENTIALS = berthType<RegistryCredential>('RegistryCredential', 'registrycredentials');

export const registryCredentialResource: CustomResource = {
  ...REGISTRY_CREDENTIALS,
  shortNames: ['regcred'],
  description:
    'Credentials of a registry that a key registered. The password is in a Secret that this object owns and that Berth cannot read.',
  columns: [
    { name: 'Server', type: 'string', jsonPath: '.spec.server' },
    { name: 'User', type: 'string', jsonPath: '.spec.username' },
    AGE_COLUMN,
  ],
  spec: registryCredentialSpecSchema,
  rules: [
    {
      rule: `self.metadata.name.matches("${REGISTRY_NAME.source}")`,
      message: 'metadata.name may have at most 40 lower-case letters, digits and -: write a shorter name',
    },
  ],
};
