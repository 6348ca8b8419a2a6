import type { Logger } from 'pino';
import type { EventRecorder } from '../kube/events.ts';
import type { ResourceType } from '../kube/types.ts';
import { GPU_INSTANCES } from '../resources/gpu-instance.ts';
import type { AuditSink } from './audit.ts';

const INSTANCES: ResourceType = GPU_INSTANCES;

/**
 * Writes every record as one log line, and logins as Events of the instance, where its owner sees who was in. The
 * recorder counts repeats up and drops floods.
 */
export function auditSink(log: Logger, events: EventRecorder): AuditSink {
  return (record) => {
    log.info({ audit: record }, 'SSH audit');
    if (record.event !== 'login') return;
    const { namespace, instance, instanceUid, fingerprint } = record.login;
    const object = { metadata: { name: instance, namespace, uid: instanceUid } };
    events.record(INSTANCES, object, { type: 'Normal', reason: 'SSHLogin', message: `SSH login with ${fingerprint}` });
  };
}
