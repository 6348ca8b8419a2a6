import { mayShareTemplates, sharingChanged, wantsSharing } from '../../caches/templates.ts';
import type { Finding } from '../../kube/conditions.ts';
import { keyOf } from '../../kube/types.ts';
import { numericId } from '../../resources/ids.ts';
import {
  INSTANCE_TEMPLATES,
  type InstanceTemplate,
  MAX_FROZEN_BYTES,
  SHARED_TEMPLATE_LABEL,
  SHARED_TEMPLATES_LABEL,
  snapshotOf,
  templateHash,
} from '../../resources/instance-template.ts';
import { choosesDevices, DEVICE_ENV_REFUSAL } from '../../resources/pod/device-env.ts';
import { changeSource } from '../change-source.ts';
import { readyStatus, type StatusKind } from './status-controller.ts';
import type { ControllerStores } from '../stores.ts';

type Found = Omit<Finding, 'type'>;

const READY = { status: 'True', reason: 'Valid', message: 'Instances may name this template.' } as const;

function validity(template: InstanceTemplate, mayShare: (namespace: string) => boolean): Found {
  // The API server refuses such an environment, but not in templates that it has had for longer.
  const names = (template.spec.env ?? []).map(({ name }) => name).filter(choosesDevices);
  if (names.length > 0) {
    return { status: 'False', reason: 'ForbiddenEnv', message: `${names.join(', ')}: ${DEVICE_ENV_REFUSAL}.` };
  }
  if (snapshotOf(template) === undefined) {
    const message = `The content has more than ${MAX_FROZEN_BYTES / 1024} KiB. Make it smaller.`;
    return { status: 'False', reason: 'TooLarge', message };
  }
  const { namespace = '' } = template.metadata;
  if (!wantsSharing(template) || mayShare(namespace)) return READY;
  const message = `Only instances of this namespace may name this template. Its label ${SHARED_TEMPLATE_LABEL} does nothing, because the namespace may not share templates. The operator can label namespace ${namespace} with ${SHARED_TEMPLATES_LABEL}=true.`;
  return { status: 'True', reason: 'NotShared', message };
}

/** Shows id, content hash and validity of a template. `own`: Berth's own namespace. */
export function templateStatus({ templates, namespaces }: ControllerStores, own: string): StatusKind<InstanceTemplate> {
  const mayShare = (namespace: string): boolean => mayShareTemplates({ namespaces, own }, namespace);
  return {
    name: 'instancetemplate',
    type: INSTANCE_TEMPLATES,
    store: templates,
    sources: [
      changeSource(namespaces, (change) =>
        sharingChanged(change) ? templates.by('namespace', change.key).map(keyOf) : [],
      ),
    ],
    statusOf: (template, now) => ({
      ...readyStatus(template, validity(template, mayShare), now),
      id: numericId(template.metadata.uid ?? ''),
      hashId: templateHash(template.spec),
    }),
  };
}
