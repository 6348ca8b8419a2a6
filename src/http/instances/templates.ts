import type { ReadStore } from '../../kube/watch/store.ts';
import type { GpuInstance, GpuInstanceSpec } from '../../resources/gpu-instance.ts';
import { type InstanceTemplate, SHARED_TEMPLATE_LABEL, templateHash } from '../../resources/instance-template.ts';

/** Finds the templates that a tenant may use: its own, and shared ones of other namespaces. */
export class TemplateFinder {
  readonly #store: ReadStore<InstanceTemplate>;

  constructor(store: ReadStore<InstanceTemplate>) {
    this.#store = store;
  }

  /** The template of this id and hash; the tenant's own before a shared one. */
  find(
    namespace: string,
    { templateId, templateHashId }: Pick<GpuInstanceSpec, 'templateId' | 'templateHashId'>,
  ): InstanceTemplate | undefined {
    const byId = templateId === undefined ? undefined : this.#store.by('id', String(templateId));
    const found = byId ?? (templateHashId === undefined ? [] : this.#store.by('hash', templateHashId));
    const visible = found.filter(
      ({ metadata, spec }) =>
        (metadata.namespace === namespace || metadata.labels?.[SHARED_TEMPLATE_LABEL] === 'true') &&
        (byId === undefined || templateHashId === undefined || templateHash(spec) === templateHashId),
    );
    return visible.find(({ metadata }) => metadata.namespace === namespace) ?? visible[0];
  }

  ofInstance({ metadata, spec }: GpuInstance): InstanceTemplate | undefined {
    if (spec.templateId === undefined && spec.templateHashId === undefined) return undefined;
    return this.find(metadata.namespace ?? '', spec);
  }
}
