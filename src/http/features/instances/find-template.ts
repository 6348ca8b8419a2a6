import { findTemplate, type TemplateSource } from '../../../caches/templates.ts';
import type { KubeClient } from '../../../kube/client/client.ts';
import { everyObject } from '../../../kube/client/every.ts';
import { findObject } from '../../../kube/client/find-object.ts';
import { keyOf } from '../../../kube/types.ts';
import type { InTurn } from '../../../lib/in-turn.ts';
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
/** Metadata of so many templates may have some megabytes. */
const PAGE = 100;

interface Source {
  client: Pick<KubeClient, 'list' | 'get'>;
  templates: TemplateSource;
  /** By tenant. */
  liveLooks: InTurn;
}

function isNamed({ metadata, spec }: InstanceTemplate, { templateId, templateHashId }: TemplateReference): boolean {
  if (templateId !== undefined && numericId(metadata.uid ?? '') !== templateId) return false;
  return templateHashId === undefined || templateHash(spec) === templateHashId;
}

/**
 * The template among those of the tenant that the cache does not have in their present version. Names are listed until it
 * is found, and only templates are read that it may be.
 */
async function findNewer(
  { client, templates }: Omit<Source, 'liveLooks'>,
  namespace: string,
  reference: TemplateReference,
): Promise<InstanceTemplate | undefined> {
  const { templateId } = reference;
  const listed = everyObject(client, INSTANCE_TEMPLATES, { namespace, metadataOnly: true, page: PAGE });
  let read = 0;
  for await (const { metadata } of listed) {
    if (templateId !== undefined && numericId(metadata.uid ?? '') !== templateId) continue;
    const ref = { namespace, name: metadata.name };
    if (templates.templates.get(keyOf(ref))?.metadata.resourceVersion === metadata.resourceVersion) continue;
    const template = await findObject(client, INSTANCE_TEMPLATES, ref);
    if (template !== undefined && isNamed(template, reference)) return template;
    read += 1;
    if (read === MOST_READ) return undefined;
  }
  return undefined;
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
  const cached = (): InstanceTemplate | undefined => findTemplate(source.templates, tenant, reference);
  return (
    cached() ??
    // Whoever names what is not there costs the API server pages of all that the tenant has.
    source.liveLooks.run(tenant, async () => {
      const newer = cached() ?? (await findNewer(source, tenant, reference));
      // While the API server was asked, the watch may have brought the template, which is then not newer than the cache.
      return newer ?? cached();
    })
  );
}
