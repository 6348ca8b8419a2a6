import { setCondition } from '../../kube/conditions.ts';
import { keyOf } from '../../kube/types.ts';
import { numericId } from '../../resources/ids.ts';
import {
  INSTANCE_TEMPLATES,
  type InstanceTemplate,
  type InstanceTemplateStatus,
  templateHash,
} from '../../resources/instance-template.ts';
import { type Source, storeSource } from '../../runtime/source.ts';
import type { StatusRun } from '../status-run.ts';
import type { ControllerStores } from '../stores.ts';
import { patchStatus } from '../write-status.ts';

export function templateSources(stores: ControllerStores): Source[] {
  return [storeSource(stores.templates, (template) => [keyOf(template)])];
}

export function templateStatus(template: InstanceTemplate, now: number): InstanceTemplateStatus {
  const { generation, uid = '' } = template.metadata;
  const finding = { type: 'Ready', status: 'True', reason: 'Valid', message: 'Instances may name it.' } as const;
  const conditions = setCondition(template.status?.conditions, finding, { observedGeneration: generation, now });
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    conditions: conditions as NonNullable<InstanceTemplateStatus['conditions']>,
    id: numericId(uid),
    hashId: templateHash(template.spec),
  };
}

/** Keeps id and content hash of a template in its status. */
export async function reconcileTemplate({ deps, key, context }: StatusRun): Promise<void> {
  const template = deps.stores.templates.get(key);
  if (template === undefined || template.metadata.deletionTimestamp !== undefined) return;
  const status = templateStatus(template, deps.clock.now());
  await patchStatus(deps.client, INSTANCE_TEMPLATES, template, { status, signal: context.signal });
}
