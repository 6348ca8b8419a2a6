import { numericId } from '../../resources/ids.ts';
import { INSTANCE_TEMPLATES, type InstanceTemplate, templateHash } from '../../resources/instance-template.ts';
import { readyStatus, type StatusKind } from './status-controller.ts';
import type { ControllerStores } from '../stores.ts';

const READY = { status: 'True', reason: 'Valid', message: 'Instances may name this template.' } as const;

/** Shows id and content hash of a template. */
export function templateStatus({ templates }: ControllerStores): StatusKind<InstanceTemplate> {
  return {
    name: 'instancetemplate',
    type: INSTANCE_TEMPLATES,
    store: templates,
    statusOf: (template, now) => ({
      ...readyStatus(template, READY, now),
      id: numericId(template.metadata.uid ?? ''),
      hashId: templateHash(template.spec),
    }),
  };
}
