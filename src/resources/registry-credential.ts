import { z } from 'zod';
import type { KubeObject } from '../kube/types.ts';
import { AGE_COLUMN, berthType, patterned, withRules, type CustomResource } from './schema.ts';

/** Also the name of the Secret: what spec.imagePullSecrets of an instance names. */
export const REGISTRY_NAME = /^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$/;
/** A registry as the name of an image begins with it. */
export const REGISTRY_SERVER = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?$/;

/** On the Secrets that Berth makes for tenants. */
export const REGISTRY_LABEL = 'berth.dev/registry';

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
