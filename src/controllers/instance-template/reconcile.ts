import { keyOf } from '../../kube/types.ts';
import { numericId } from '../../resources/ids.ts';
import { INSTANCE_TEMPLATES, type InstanceTemplateStatus, templateHash } from '../../resources/instance-template.ts';
import { type Source, storeSource } from '../../runtime/source.ts';
import type { StatusRun } from '../common-deps.ts';
import type { ControllerStores } from '../stores.ts';
import { patchStatus, readyStatus } from '../write-status.ts';

export function templateSources(stores: ControllerStores): Source[] {
  return [storeSource(stores.templates, (template) => [keyOf(template)])];
}

const READY = { status: 'True', reason: 'Valid', message: 'Instances may name this template.' } as const;

/** Keeps id and content hash of a template in its status. */
export async function reconcileTemplate({ deps, key, context }: StatusRun): Promise<void> {
  const template = deps.stores.templates.get(key);
  if (template === undefined || template.metadata.deletionTimestamp !== undefined) return;
  const status = {
    ...readyStatus(template, READY, deps.clock.now()),
    id: numericId(template.metadata.uid ?? ''),
    hashId: templateHash(template.spec),
  } satisfies InstanceTemplateStatus;
  await patchStatus(deps.client, INSTANCE_TEMPLATES, template, { status, signal: context.signal });
}
