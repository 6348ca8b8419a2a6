import { z } from 'zod';
import type { KubeObject } from '../kube/types.ts';
import { contentHash } from '../lib/content-hash.ts';
import { numericId } from './ids.ts';
import {
  hasPlainPath,
  IMAGE_HINT,
  IMAGE_PATTERN,
  MAX_IMAGE_LENGTH,
  PLAIN_PATH_HINT,
  PLAIN_PATH_RULE,
} from './image.ts';
import { choosesDevices, DEVICE_ENV, DEVICE_ENV_REFUSAL, HARMLESS_ENV } from './pod/device-env.ts';
import { programText } from './pod/literal.ts';
import {
  AGE_COLUMN,
  berthType,
  conditionsSchema,
  listMap,
  patterned,
  withRules,
  type CustomResource,
} from './schema.ts';

export const RUNTYPES = ['ssh', 'jupyter', 'args'] as const;
export type Runtype = (typeof RUNTYPES)[number];

function imageOf(text: z.ZodString): z.ZodString {
  const image = patterned(text.max(MAX_IMAGE_LENGTH, { abort: true }), IMAGE_PATTERN, IMAGE_HINT);
  return withRules(image.refine(hasPlainPath, PLAIN_PATH_HINT), { rule: PLAIN_PATH_RULE, message: PLAIN_PATH_HINT });
}

export const imageSchema = imageOf(z.string()).describe(
  'Container image. Empty or absent: the image of the template, or else the default image.',
);
/** An image that must be named. */
export const namedImageSchema = imageOf(z.string().min(1)).describe('Container image.');

export const runtypeSchema = z
  .enum(RUNTYPES)
  .describe(
    'ssh: a machine to log in to. jupyter: the same, with a Jupyter server. args: the entrypoint of the image.',
  );

const envNameSchema = withRules(
  patterned(
    z.string().min(1).max(256, { abort: true }),
    /^([-_a-zA-Z]|\.[-_a-zA-Z0-9])[-._a-zA-Z0-9]*$/,
    'write letters, digits, - _ and . only, and neither a digit nor two dots first',
  ).refine((name) => !choosesDevices(name), { error: ({ input }) => `${String(input)}: ${DEVICE_ENV_REFUSAL}` }),
  {
    rule: `!self.matches(${JSON.stringify(DEVICE_ENV.source)}) || self in ${JSON.stringify(HARMLESS_ENV)}`,
    message: DEVICE_ENV_REFUSAL,
    messageExpression: `self + ${JSON.stringify(`: ${DEVICE_ENV_REFUSAL}`)}`,
  },
);

/** Most environment variables of an instance or a template. */
export const MOST_VARIABLES = 128;

export const envSchema = listMap(
  z
    .array(
      z
        .object({
          name: envNameSchema.describe('Name of the variable. Variables that choose GPUs or drivers are refused.'),
          value: programText(z.string().max(32768))
            .optional()
            .describe('Value of the variable, as the program gets it. Absent: empty.'),
        })
        .describe('One environment variable.'),
    )
    .max(MOST_VARIABLES)
    .describe('Environment variables. For each name the instance wins over the template.'),
  'name',
);

const isUdp = (port: string): string => `(has(${port}.protocol) && ${port}.protocol == 'UDP')`;

export const portsSchema = withRules(
  z
    .array(
      z
        .object({
          containerPort: z.int().min(1).max(65535).describe('Port that the program listens on.'),
          protocol: z.enum(['TCP', 'UDP']).optional().describe('TCP or UDP. Absent: TCP.'),
          name: patterned(
            z.string().max(15, { abort: true }),
            /^([0-9]+-)*[0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*$/,
            'write lower-case letters, digits and single - only, with one letter at least, for example http',
          )
            .optional()
            .describe('Name of the port.'),
        })
        .describe('One port.'),
    )
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe('Ports that the programs of the instance listen on.'),
  {
    rule: `self.all(a, self.exists_one(b, b.containerPort == a.containerPort && ${isUdp('b')} == ${isUdp('a')}))`,
    message: 'write each port of a protocol once',
  },
  {
    rule: 'self.all(a, !has(a.name) || self.exists_one(b, has(b.name) && b.name == a.name))',
    message: 'write each name of a port once',
  },
);

/** Most words of a command, or of its arguments. */
export const MOST_WORDS = 64;

export const commandSchema = z
  .array(programText(z.string().max(4096)).describe('One word of the command line, as the program gets it.'))
  .max(MOST_WORDS);
export const onStartSchema = programText(z.string().max(65536)).describe(
  'Shell script that runs in the background after each start (runtypes ssh and jupyter).',
);
const pullSecretsSchema = listMap(
  z
    .array(
      z
        .object({
          name: patterned(
            z.string().min(1).max(253, { abort: true }),
            /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
            'write the name of a Secret, for example my-registry',
          ).describe('Name of the Secret.'),
        })
        .describe('One Secret.'),
    )
    .max(16),
  'name',
);
export const imagePullSecretsSchema = pullSecretsSchema.describe(
  'Secrets of type kubernetes.io/dockerconfigjson in the namespace of the instance, with which the kubelet pulls a private image. The list of the instance wins over that of the template. Berth does not read them.',
);
/** The same for the images that a pool keeps on its nodes. */
export const poolPullSecretsSchema = pullSecretsSchema.describe(
  "Secrets of type kubernetes.io/dockerconfigjson in Berth's own namespace, with which the kubelet pulls the private ones of spec.images. Berth does not read them.",
);
export const diskGbSchema = z.int().min(1).max(16384).describe('Size of the disk at /workspace, in GB.');

export const instanceTemplateSpecSchema = z.object({
  displayName: z.string().max(128).default('').describe('Name for people.'),
  image: imageSchema.optional(),
  runtype: runtypeSchema.optional(),
  command: commandSchema.optional().describe('Replaces the entrypoint of the image (runtype args).'),
  args: commandSchema.optional().describe('Replaces the arguments of the image (runtype args).'),
  onStart: onStartSchema.optional(),
  env: envSchema.optional(),
  ports: portsSchema.optional(),
  diskGb: diskGbSchema.optional(),
  imagePullSecrets: imagePullSecretsSchema.optional(),
});

export const instanceTemplateStatusSchema = z.object({
  observedGeneration: z.int().optional().describe('metadata.generation that the status is for.'),
  conditions: conditionsSchema.optional(),
  id: z.int().optional().describe('Numeric id: template_id of the HTTP interface.'),
  hashId: z.string().optional().describe('Hash of the content: template_hash_id of the HTTP interface.'),
});

/** What a template gives to the instances that start from it. */
export type TemplateContent = Omit<InstanceTemplateSpec, 'displayName'>;

// Without the rules of the template's own spec: what an older version of Berth let through must not make a status that
// the API server refuses.
const frozenContentSchema = z.object({
  image: z.string().optional().describe('Container image.'),
  runtype: runtypeSchema.optional(),
  command: z.array(z.string().describe('One word.')).optional().describe('Replaces the entrypoint of the image.'),
  args: z.array(z.string().describe('One word.')).optional().describe('Replaces the arguments of the image.'),
  onStart: z.string().optional().describe('Shell script that runs after each start.'),
  env: z
    .array(
      z
        .object({
          name: z.string().describe('Name of the variable.'),
          value: z.string().optional().describe('Value of the variable. Absent: empty.'),
        })
        .describe('One environment variable.'),
    )
    .optional()
    .describe('Environment variables.'),
  ports: z
    .array(
      z
        .object({
          containerPort: z.int().describe('Port that the program listens on.'),
          protocol: z.enum(['TCP', 'UDP']).optional().describe('TCP or UDP. Absent: TCP.'),
          name: z.string().optional().describe('Name of the port.'),
        })
        .describe('One port.'),
    )
    .optional()
    .describe('Ports that the programs of the instance listen on.'),
  diskGb: z.int().optional().describe('Size of the disk at /workspace, in GB.'),
  imagePullSecrets: z
    .array(z.object({ name: z.string().describe('Name of the Secret.') }).describe('One Secret.'))
    .optional()
    .describe('Secrets in the namespace of the instance, with which the kubelet pulls a private image.'),
}) satisfies z.ZodType<TemplateContent>;

/** Most bytes of content, as JSON, that an instance keeps of its template. etcd takes 1.5 MiB for the whole instance. */
export const MAX_FROZEN_BYTES = 262_144;

export const templateSnapshotSchema = z.object({
  name: z.string().describe('Name of the template.'),
  namespace: z.string().describe('Namespace of the template.'),
  uid: z.string().describe('uid of the template.'),
  hashId: z.string().describe('Hash of the content.'),
  spec: frozenContentSchema.describe('The content.'),
});

/** What an instance keeps of its template from its first claim on. No edit of the template changes it. */
export type TemplateSnapshot = z.infer<typeof templateSnapshotSchema>;

export type InstanceTemplateSpec = z.infer<typeof instanceTemplateSpecSchema>;
export type InstanceTemplateStatus = z.infer<typeof instanceTemplateStatusSchema>;
export interface InstanceTemplate extends KubeObject {
  spec: InstanceTemplateSpec;
  status?: InstanceTemplateStatus;
}

export const INSTANCE_TEMPLATES = berthType<InstanceTemplate>('InstanceTemplate', 'instancetemplates');

/** Label of a template: `true` shows it to every tenant, where its namespace may share. */
export const SHARED_TEMPLATE_LABEL = 'berth.dev/shared';

/** Label of a namespace: its templates may be shared. Namespaces belong to the operator of the cluster. */
export const SHARED_TEMPLATES_LABEL = 'berth.dev/shared-templates';

export const instanceTemplateResource: CustomResource = {
  ...INSTANCE_TEMPLATES,
  shortNames: ['itpl'],
  description:
    'Image, start-up and disk for instances to start from. The label berth.dev/shared=true shows it to every tenant, if the operator has labelled the namespace berth.dev/shared-templates=true.',
  columns: [
    { name: 'ID', type: 'integer', jsonPath: '.status.id' },
    { name: 'Hash', type: 'string', jsonPath: '.status.hashId' },
    { name: 'Name', type: 'string', jsonPath: '.spec.displayName' },
    { name: 'Image', type: 'string', jsonPath: '.spec.image' },
    { name: 'Runtype', type: 'string', jsonPath: '.spec.runtype' },
    AGE_COLUMN,
  ],
  spec: instanceTemplateSpecSchema,
  status: instanceTemplateStatusSchema,
};

/**
 * What is absent in the items of lists, written out. The schema has no defaults there: `kubectl apply` replaces lists whole,
 * and would find a difference each time.
 */
export function withItemsFilled<T extends Pick<TemplateContent, 'env' | 'ports'>>(content: T): T {
  const { env, ports } = content;
  return {
    ...content,
    ...(env && { env: env.map((one) => ({ ...one, value: one.value ?? '' })) }),
    ...(ports && { ports: ports.map((one) => ({ ...one, protocol: one.protocol ?? 'TCP' })) }),
  };
}

const hashes = new WeakMap<InstanceTemplateSpec, string>();

/**
 * `template_hash_id`: 32 hex digits of the SHA-256 of the content without the name. Each version of a template is read
 * once: a list has a thousand, of 64 KiB each.
 */
export function templateHash(spec: InstanceTemplateSpec): string {
  const known = hashes.get(spec);
  if (known !== undefined) return known;
  const { displayName: _, ...content } = spec;
  const hash = contentHash(withItemsFilled(content));
  hashes.set(spec, hash);
  return hash;
}

/** What an instance that starts from the template keeps of it; undefined when that is more than MAX_FROZEN_BYTES. */
export function snapshotOf({ metadata, spec }: InstanceTemplate): TemplateSnapshot | undefined {
  const { displayName: _, ...content } = spec;
  if (Buffer.byteLength(JSON.stringify(content)) > MAX_FROZEN_BYTES) return undefined;
  const { name, namespace = '', uid = '' } = metadata;
  return { name, namespace, uid, hashId: templateHash(spec), spec: content };
}

/** What became of a template since an instance was rented with it. */
export type TemplateFate = 'same' | 'changed' | 'gone';

/** How an instance names its template. */
export interface TemplateReference {
  templateId?: number | undefined;
  templateHashId?: string | undefined;
}

export function namesTemplate({ templateId, templateHashId }: TemplateReference): boolean {
  return templateId !== undefined || templateHashId !== undefined;
}

/** Whether what an instance keeps is of the template that it names: its owner may name another one. */
export function isOfTemplate({ templateId, templateHashId }: TemplateReference, kept: TemplateSnapshot): boolean {
  if (templateId !== undefined && numericId(kept.uid) !== templateId) return false;
  return templateHashId === undefined || kept.hashId === templateHashId;
}
