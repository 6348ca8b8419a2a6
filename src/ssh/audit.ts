import type { Logger } from 'pino';
import type { EventRecorder } from '../kube/events.ts';
import type { KubeObject } from '../kube/types.ts';
import { GPU_INSTANCES } from '../resources/instances/gpu-instance.ts';

/** Who is connected: the part of every record that stays the same. */
export interface Login {
  namespace: string;
  instance: string;
  instanceUid: string;
  fingerprint: string;
  keyResource: string;
  address: string;
}

export type SessionKind = 'shell' | 'command' | 'sftp' | 'forward';

/** What happened on the gateway. Never what was typed, sent or asked for. */
export type AuditRecord =
  | { event: 'login'; login: Login; connection: string }
  | { event: 'logout'; login: Login; connection: string; reason: string; durationMs: number }
  | {
      event: 'session';
      login: Login;
      connection: string;
      kind: SessionKind;
      bytesIn: number;
      bytesOut: number;
      durationMs: number;
      /** Exit status; undefined for forwards. */
      status: number | undefined;
    };

/** Takes records; must not throw and must not block. */
export type AuditSink = (record: AuditRecord) => void;

/** Logs every record. Logins are also Events for the instance's owner; the recorder counts repeats and drops floods. */
export function auditSink(log: Logger, events: EventRecorder): AuditSink {
  return (record) => {
    log.info({ audit: record }, 'SSH audit');
    if (record.event !== 'login') return;
    const { namespace, instance, instanceUid, fingerprint } = record.login;
    const object = { metadata: { name: instance, namespace, uid: instanceUid } };
    const event = { type: 'Normal', reason: 'SSHLogin', message: `SSH login with ${fingerprint}` } as const;
    events.record<KubeObject>(GPU_INSTANCES, object, event);
  };
}
