import { findTemplate, type TemplateSource } from '../../../caches/templates.ts';
import type { KubeClient } from '../../../kube/client/client.ts';
import { findObject } from '../../../kube/client/find-object.ts';
import { keyOf } from '../../../kube/types.ts';
import { numericId } from '../../../resources/ids.ts';
import {
  INSTANCE_TEMPLATES,
  type InstanceTemplate,
  namesTemplate,
  templateHash,
  type TemplateReference,
} from '../../../resources/instance-template.ts';

/** Templates that may have changed since the cache saw them, and are read to find one. */
const MOST_READ = 16;

interface Source {
  client: Pick<KubeClient, 'list' | 'get'>;
  templates: TemplateSource;
}

/** Templates of the tenant that the cache does not have in their present version. Only their names are listed. */
async function newerTemplates({ client, templates }: Source, namespace: string): Promise<InstanceTemplate[]> {
  const { items } = await client.list(INSTANCE_TEMPLATES, { namespace, metadataOnly: true });
  const isNewer = ({ metadata }: InstanceTemplate): boolean =>
    templates.templates.get(keyOf({ namespace, name: metadata.name }))?.metadata.resourceVersion !==
    metadata.resourceVersion;
  const newer = items.filter(isNewer).slice(0, MOST_READ);
  const read = newer.map(({ metadata }) => findObject(client, INSTANCE_TEMPLATES, { namespace, name: metadata.name }));
  return (await Promise.all(read)).filter((found) => found !== undefined);
}

function isNamed({ metadata, spec }: InstanceTemplate, { templateId, templateHashId }: TemplateReference): boolean {
  if (templateId !== undefined && numericId(metadata.uid ?? '') !== templateId) return false;
  return templateHashId === undefined || templateHash(spec) === templateHashId;
}

/**
 * The template that a tenant names: from the cache, else live, because another replica may have just made or changed
 * it. Templates that others share come from the cache alone.
 */
export async function findTemplateOf(
  source: Source,
  tenant: string,
  reference: TemplateReference,
): Promise<InstanceTemplate | undefined> {
  if (!namesTemplate(reference)) return undefined;
  const cached = findTemplate(source.templates, tenant, reference);
  if (cached !== undefined) return cached;
  const newer = (await newerTemplates(source, tenant)).find((template) => isNamed(template, reference));
  // While the API server was asked, the watch may have brought the template, which is then not newer than the cache.
  return newer ?? findTemplate(source.templates, tenant, reference);
}
