import { isShared, type TemplateSource } from '../../../caches/templates.ts';
import { numericId } from '../../../resources/ids.ts';
import { type InstanceTemplate, templateHash } from '../../../resources/instance-template.ts';
import { timeText } from '../../interface/schema.ts';
import { portRecords } from '../instances/record.ts';
import type { TemplateListItem, TemplateRecord } from './schema.ts';

/** The number that the API knows a template by. */
export function templateId({ metadata }: InstanceTemplate): number {
  return numericId(metadata.uid ?? '');
}

/** The template as lists show it. @param tenant who reads it */
export function toTemplateListItem(
  source: Omit<TemplateSource, 'templates'>,
  tenant: string,
  template: InstanceTemplate,
): TemplateListItem {
  const { metadata, spec } = template;
  return {
    id: templateId(template),
    object: 'template',
    name: spec.displayName,
    image: spec.image || null,
    runtype: spec.runtype ?? null,
    disk_gb: spec.diskGb ?? null,
    hash_id: templateHash(spec),
    shared: isShared(source, template),
    read_only: metadata.namespace !== tenant,
    created_at: timeText(metadata.creationTimestamp),
  };
}

/** The template with its content. @param tenant who reads it */
export function toTemplateRecord(
  source: Omit<TemplateSource, 'templates'>,
  tenant: string,
  template: InstanceTemplate,
): TemplateRecord {
  const { env = [], ports = [], command, args, onStart, imagePullSecrets } = template.spec;
  return {
    ...toTemplateListItem(source, tenant, template),
    env: Object.fromEntries(env.map(({ name, value = '' }) => [name, value])),
    ports: portRecords(ports),
    command: command ?? null,
    args: args ?? null,
    on_start: onStart ?? null,
    registry: imagePullSecrets?.[0]?.name ?? null,
  };
}
