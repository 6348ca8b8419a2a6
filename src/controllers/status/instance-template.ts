import type { Finding } from '../../kube/conditions.ts';
import { numericId } from '../../resources/ids.ts';
import { INSTANCE_TEMPLATES, type InstanceTemplate, templateHash } from '../../resources/instance-template.ts';
import { choosesDevices, DEVICE_ENV_REFUSAL } from '../../resources/pod/device-env.ts';
import { readyStatus, type StatusKind } from './status-controller.ts';
import type { ControllerStores } from '../stores.ts';

const READY = { status: 'True', reason: 'Valid', message: 'Instances may name this template.' } as const;

/** The API server refuses such an environment, but not in templates that it has had for longer. */
function validity({ spec: { env = [] } }: InstanceTemplate): Omit<Finding, 'type'> {
  const names = env.map(({ name }) => name).filter(choosesDevices);
  if (names.length === 0) return READY;
  return { status: 'False', reason: 'ForbiddenEnv', message: `${names.join(', ')}: ${DEVICE_ENV_REFUSAL}.` };
}

/** Shows id and content hash of a template. */
export function templateStatus({ templates }: ControllerStores): StatusKind<InstanceTemplate> {
  return {
    name: 'instancetemplate',
    type: INSTANCE_TEMPLATES,
    store: templates,
    statusOf: (template, now) => ({
      ...readyStatus(template, validity(template), now),
      id: numericId(template.metadata.uid ?? ''),
      hashId: templateHash(template.spec),
    }),
  };
}
