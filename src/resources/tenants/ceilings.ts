import { z } from 'zod';
import { hasPlainPath } from '../image.ts';
import { patterned } from '../schema.ts';
import { budgetSchema } from './budget.ts';

/** Length of the lists of GPU ceilings and of images. */
export const MOST_ENTRIES = 64;

const count = (description: string, most: number, usual: number) =>
  z.int().min(0).max(most).default(usual).describe(description);

const imagePattern = patterned(
  z.string().min(1).max(512),
  /^[^\s*]*\*?$/,
  'write an image, or the start of one and a * at the end, for example ghcr.io/acme/*',
).describe('An image, or the start of one and a * at the end.');

const gpuCeiling = z
  .object({
    pool: z.string().min(1).max(253).default('*').describe('Name of the GPUPool. Absent or *: all together.'),
    product: z
      .string()
      .min(1)
      .max(128)
      .default('*')
      .describe('GPU product as the offers name it, for example NVIDIA-L40S. Absent or *: all together.'),
    max: z.int().min(0).max(100_000).describe('GPUs and MIG slices that the tenant may hold at once.'),
  })
  .describe('A ceiling over the GPUs of one product in one pool.');

const objectsSchema = z.object({
  instances: count('GPUInstances, in whatever state.', 100_000, 1000),
  sshKeys: count('SSHKeys.', 100_000, 1000),
  templates: count('InstanceTemplates.', 100_000, 1000),
  apiKeys: count('APIKeys.', 100_000, 1000),
  registries: count('RegistryCredentials, each with a Secret.', 10_000, 100),
  webhooks: count('Webhooks.', 100, 10),
});

const httpSchema = z.object({
  requestsPerMinute: count('Calls of the compute endpoints per minute.', 10_000_000, 120_000),
  eventStreams: count('Open event streams, in each replica of the api role.', 100_000, 500),
  bodyMib: count('MiB of request bodies held at once, in each replica of the api role.', 16_384, 128),
});

const modelsSchema = z.object({
  callsPerMinute: z.int().min(0).max(10_000_000).optional().describe('Model calls per minute. Absent: no ceiling.'),
  tokensPerMinute: z
    .int()
    .min(0)
    .max(10_000_000_000)
    .optional()
    .describe('Tokens of model calls per minute. Absent: no ceiling.'),
  callsAtOnce: count('Model calls under way, in each replica of the api role.', 100_000, 1000),
  storedResponses: count('Stored responses, in memory of each replica, or in Valkey.', 1_000_000, 1000),
});

const sshSchema = z.object({
  connections: count('SSH connections, in each replica of the ssh role.', 100_000, 1000),
  channels: count('Open channels of these connections: shells, commands, copies, forwards.', 1_000_000, 4000),
});

/** An object whose fields all have defaults, and which is itself filled in when it is absent. */
function filled<T extends z.ZodObject>(schema: T, description: string) {
  return schema.prefault({} as z.input<T>).describe(description);
}

/** What one tenant may have and use. TenantPolicy asks for it and TenantLimit holds it. */
export const ceilingsSchema = z.object({
  gpus: z
    .array(gpuCeiling)
    .max(MOST_ENTRIES)
    .default([])
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe('GPUs at once. Every entry holds. Empty: no ceiling.'),
  diskGb: z
    .int()
    .min(0)
    .max(1_000_000_000)
    .optional()
    .describe(
      'GB of PersistentVolumeClaims of instances, and of deleted instances whose disks were kept, together. Absent: no ceiling.',
    ),
  budget: filled(budgetSchema, 'The money that the tenant may spend in a calendar month of UTC. All limits apply.'),
  objects: filled(objectsSchema, 'Objects in the namespace. ResourceQuota berth enforces it.'),
  images: z
    .array(imagePattern)
    .max(MOST_ENTRIES)
    .default(['*'])
    .describe(
      'Images that instances may run, with the registry spelled out: debian:12 is docker.io/library/debian:12. Empty: none.',
    ),
  runtimeClassNames: z
    .array(z.string().min(1).max(253).describe('Name of a RuntimeClass.'))
    .max(32)
    .default([])
    .describe('RuntimeClasses that an instance may name where its pool has none.'),
  userNamespaces: z
    .enum(['Optional', 'Required'])
    .default('Optional')
    .describe('Required: every instance runs in a user namespace, whatever its spec says.'),
  http: filled(httpSchema, 'Shares of the HTTP interface.'),
  models: filled(modelsSchema, 'Shares of the model gateway.'),
  ssh: filled(sshSchema, 'Shares of the SSH gateway.'),
});

export type Ceilings = z.infer<typeof ceilingsSchema>;

/** What holds where no TenantPolicy says otherwise. */
export const DEFAULT_CEILINGS: Ceilings = ceilingsSchema.parse({});

/** What holds under a policy that cannot be read: nothing new can be rented or made, and what runs stays in reach. */
export const CLOSED_CEILINGS: Ceilings = {
  ...DEFAULT_CEILINGS,
  gpus: [{ pool: '*', product: '*', max: 0 }],
  objects: { instances: 0, sshKeys: 0, templates: 0, apiKeys: 0, registries: 0, webhooks: 0 },
  images: [],
  userNamespaces: 'Required',
};

/**
 * The image with its registry and, on Docker Hub, its library spelled out, as containerd reads it
 * (github.com/distribution/reference, splitDockerDomain). The chart's admission policy does the same.
 */
export function fullImageName(image: string): string {
  const [first = ''] = image.split('/', 1);
  const isHost = first !== image && (/[.:A-Z]/.test(first) || first === 'localhost');
  const path = isHost ? image.slice(first.length + 1) : image;
  const host = isHost && first !== 'index.docker.io' ? first : 'docker.io';
  return `${host}/${host === 'docker.io' && !path.includes('/') ? 'library/' : ''}${path}`;
}

/** Whether one of the patterns allows the image. None allows one that a registry could read as another path. */
export function allowsImage(patterns: readonly string[], image: string): boolean {
  if (!hasPlainPath(image)) return false;
  const full = fullImageName(image);
  return patterns.some((pattern) => covers(pattern, full));
}

/** Whether a pattern covers a name, or another pattern. */
export function covers(pattern: string, other: string): boolean {
  return pattern.endsWith('*') ? other.startsWith(pattern.slice(0, -1)) : other === pattern;
}

/** Whether a GPU ceiling is for these GPUs. */
export function isForGpus(
  { pool, product }: Pick<Ceilings['gpus'][number], 'pool' | 'product'>,
  gpus: { pool: string; product: string },
): boolean {
  return (pool === '*' || pool === gpus.pool) && (product === '*' || product === gpus.product);
}
