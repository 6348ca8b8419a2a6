import type { ReadStore } from '../../kube/watch/store.ts';
import type { GpuInstanceSpec } from '../../resources/gpu-instance.ts';
import { type InstanceTemplate, SHARED_TEMPLATE_LABEL, templateHash } from '../../resources/instance-template.ts';

/** The template of this id and hash that the tenant may use: its own before a shared one of another namespace. */
export function findTemplate(
  store: ReadStore<InstanceTemplate>,
  namespace: string,
  { templateId, templateHashId }: Pick<GpuInstanceSpec, 'templateId' | 'templateHashId'>,
): InstanceTemplate | undefined {
  const byId = templateId === undefined ? undefined : store.by('id', String(templateId));
  const found = byId ?? (templateHashId === undefined ? [] : store.by('hash', templateHashId));
  const visible = found.filter(
    ({ metadata, spec }) =>
      (metadata.namespace === namespace || metadata.labels?.[SHARED_TEMPLATE_LABEL] === 'true') &&
      (byId === undefined || templateHashId === undefined || templateHash(spec) === templateHashId),
  );
  return visible.find(({ metadata }) => metadata.namespace === namespace) ?? visible[0];
}
