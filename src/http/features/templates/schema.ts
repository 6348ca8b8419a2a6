import { z } from 'zod';
import { diskGbSchema, imageSchema, RUNTYPES, runtypeSchema } from '../../../resources/instance-template.ts';
import { deletedOf, LIMITS, listOf, named, textSchema, timeSchema } from '../../interface/schema.ts';
import { checkProgram, runFields } from '../instances/run-schema.ts';

export const templateContentSchema = named(
  'TemplateContent',
  z
    .strictObject({
      name: textSchema().max(LIMITS.name).describe('Name for people.'),
      image: imageSchema.describe('Container image. Empty or absent: the default image.').nullish(),
      runtype: runtypeSchema.nullish(),
      disk_gb: diskGbSchema.nullish(),
      ...runFields,
    })
    .superRefine(checkProgram)
    .describe('Saved settings from which instances start. Every field but the name may be absent or null.'),
);

const templateFields = {
  id: z.int().min(1).describe('Send it as template_id.'),
  object: z.literal('template'),
  name: z.string(),
  image: z.string().nullable(),
  runtype: z.enum(RUNTYPES).nullable(),
  disk_gb: z.int().nullable(),
  hash_id: z.string().describe('Hash of the content. Send it as template_hash_id to rent exactly this content.'),
  shared: z.boolean().describe('Whether every tenant may use it.'),
  read_only: z.boolean().describe('Whether it belongs to another tenant, who shares it.'),
  created_at: timeSchema,
};

export const templateSchema = named(
  'Template',
  z
    .object({
      ...templateFields,
      env: z.record(z.string(), z.string()),
      ports: z.array(
        z.object({ container_port: z.int(), protocol: z.enum(['tcp', 'udp']), name: z.string().nullable() }),
      ),
      command: z.array(z.string()).nullable(),
      args: z.array(z.string()).nullable(),
      on_start: z.string().nullable(),
      registry: z.string().nullable(),
    })
    .describe('A template with its content. Every key that may read it sees all of it: keep secrets out.'),
);

export const templateListSchema = named(
  'TemplateList',
  listOf(z.object(templateFields).describe('A template without what may be long: read it by its id.')),
);
export const deletedTemplateSchema = named('DeletedTemplate', deletedOf(z.int(), 'template'));

export type TemplateBody = z.infer<typeof templateContentSchema>;
export type TemplateRecord = z.infer<typeof templateSchema>;
export type TemplateListItem = z.infer<typeof templateListSchema>['data'][number];
