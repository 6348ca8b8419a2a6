import type { Namespace } from '../kube/types.ts';
import type { ReadStore, StoreChange } from '../kube/watch/store.ts';
import { numericId } from '../resources/ids.ts';
import {
  type InstanceTemplate,
  SHARED_TEMPLATE_LABEL,
  SHARED_TEMPLATES_LABEL,
  type TemplateFate,
  templateHash,
  type TemplateReference,
  type TemplateSnapshot,
} from '../resources/instance-template.ts';

/** Where templates are found. */
export interface TemplateSource {
  templates: ReadStore<InstanceTemplate>;
  namespaces: ReadStore<Namespace>;
  /** Berth's own namespace. */
  own: string;
}

/** Whether a namespace has the operator's label for it. Its tenants can label templates, but not the namespace. */
function hasSharingLabel(namespace: Namespace | undefined): boolean {
  return namespace?.metadata.labels?.[SHARED_TEMPLATES_LABEL] === 'true';
}

/** Whether a change of a namespace changes who sees its templates. */
export function sharingChanged({ before, after }: StoreChange<Namespace>): boolean {
  return hasSharingLabel(before) !== hasSharingLabel(after);
}

/** Whether the operator lets a namespace show its templates to every tenant. */
export function mayShareTemplates({ namespaces, own }: Omit<TemplateSource, 'templates'>, namespace: string): boolean {
  return namespace === own || hasSharingLabel(namespaces.get(namespace));
}

/** Whether the author of a template wants every tenant to see it. */
export function wantsSharing({ metadata }: InstanceTemplate): boolean {
  return metadata.labels?.[SHARED_TEMPLATE_LABEL] === 'true';
}

/** Whether every tenant may use a template. */
export function isShared(source: Omit<TemplateSource, 'templates'>, template: InstanceTemplate): boolean {
  return wantsSharing(template) && mayShareTemplates(source, template.metadata.namespace ?? '');
}

function isVisible(source: TemplateSource, template: InstanceTemplate, tenant: string): boolean {
  return template.metadata.namespace === tenant || isShared(source, template);
}

/** The templates that a tenant may use: its own and those that others share. */
export function* visibleTemplates(source: TemplateSource, tenant: string): Generator<InstanceTemplate> {
  yield* source.templates.by('namespace', tenant);
  for (const template of source.templates.by('shared', 'true')) {
    if (template.metadata.namespace !== tenant && isShared(source, template)) yield template;
  }
}

/** The template that a tenant names: its own before a shared one of another namespace. */
export function findTemplate(
  source: TemplateSource,
  tenant: string,
  { templateId, templateHashId }: TemplateReference,
): InstanceTemplate | undefined {
  const byId = templateId === undefined ? undefined : source.templates.by('id', String(templateId));
  const found = byId ?? (templateHashId === undefined ? [] : source.templates.by('hash', templateHashId));
  const visible = found.filter(
    (template) =>
      isVisible(source, template, tenant) &&
      (byId === undefined || templateHashId === undefined || templateHash(template.spec) === templateHashId),
  );
  return visible.find(({ metadata }) => metadata.namespace === tenant) ?? visible[0];
}

/** What became of the template of an instance of this tenant. One that the tenant may not see any more is gone. */
export function fateOf(source: TemplateSource, tenant: string, { uid, hashId }: TemplateSnapshot): TemplateFate {
  const isIt = (template: InstanceTemplate): boolean =>
    template.metadata.uid === uid && isVisible(source, template, tenant);
  // By the index first: to hash the content at every look would cost more.
  if (source.templates.by('hash', hashId).some(isIt)) return 'same';
  return source.templates.by('id', String(numericId(uid))).some(isIt) ? 'changed' : 'gone';
}
