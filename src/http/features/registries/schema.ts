import { z } from 'zod';
import { REGISTRY_NAME, REGISTRY_SERVER } from '../../../resources/registry-credential.ts';
import { deletedOf, listOf, named, textSchema, timeSchema } from '../../interface/schema.ts';

/** The keys of cloud registries are JSON of some 2,300 characters. */
const MAX_PASSWORD = 8192;

export const createRegistrySchema = named(
  'CreateRegistry',
  z
    .strictObject({
      name: z
        .string()
        .regex(REGISTRY_NAME)
        .describe('Name of the credentials, unique in the tenant: at most 40 lower-case letters, digits and -.'),
      server: z
        .string()
        .max(253)
        .regex(REGISTRY_SERVER, 'write the registry as images name it, for example ghcr.io or registry.example:5000')
        .describe(
          'The registry, as images name it, for example ghcr.io or registry.example:5000. Docker Hub is docker.io.',
        ),
      username: z
        .string()
        .max(255)
        .regex(/^[!-9;-~]+$/)
        .describe('User of the registry: ASCII without spaces and colons.'),
      password: textSchema().min(1).max(MAX_PASSWORD).describe('Password or token. No answer has it.'),
    })
    .describe('Credentials of a registry. Give a token that may only pull.'),
);

export const registrySchema = named(
  'Registry',
  z
    .object({
      id: z.string().describe('The name.'),
      object: z.literal('registry'),
      name: z.string(),
      server: z.string(),
      username: z.string(),
      created_at: timeSchema,
    })
    .describe('Registered credentials of a registry, without the password.'),
);

export const registryListSchema = named('RegistryList', listOf(registrySchema));
export const deletedRegistrySchema = named('DeletedRegistry', deletedOf(z.string(), 'registry'));

export type CreateRegistry = z.infer<typeof createRegistrySchema>;
export type RegistryRecord = z.infer<typeof registrySchema>;
