import type { ReadStore } from '../../kube/watch/store.ts';
import type { GpuInstance } from '../../resources/gpu-instance.ts';
import { type InstanceTemplate, SHARED_TEMPLATE_LABEL, templateHash } from '../../resources/instance-template.ts';

/** How a template is named. */
export interface TemplateNames {
  templateId?: number | undefined;
  templateHashId?: string | undefined;
}

export interface TemplateFinder {
  /** The template of that id and hash that the tenant may see: its own before shared ones. */
  find(namespace: string, names: TemplateNames): InstanceTemplate | undefined;
  ofInstance(instance: GpuInstance): InstanceTemplate | undefined;
}

export function createTemplateFinder(store: ReadStore<InstanceTemplate>): TemplateFinder {
  function find(namespace: string, { templateId, templateHashId }: TemplateNames): InstanceTemplate | undefined {
    const byId = templateId === undefined ? undefined : store.by('id', String(templateId));
    const found = byId ?? (templateHashId === undefined ? [] : store.by('hash', templateHashId));
    const visible = found.filter(
      ({ metadata, spec }) =>
        (metadata.namespace === namespace || metadata.labels?.[SHARED_TEMPLATE_LABEL] === 'true') &&
        (byId === undefined || templateHashId === undefined || templateHash(spec) === templateHashId),
    );
    return visible.find(({ metadata }) => metadata.namespace === namespace) ?? visible[0];
  }

  return {
    find,
    ofInstance({ metadata, spec }) {
      if (spec.templateId === undefined && spec.templateHashId === undefined) return undefined;
      return find(metadata.namespace ?? '', spec);
    },
  };
}
