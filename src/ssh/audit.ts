import type { Logger } from 'pino';
import { Counter, type Registry } from 'prom-client';
import type { EventRecorder } from '../kube/events.ts';
import type { KubeObject } from '../kube/types.ts';
import { GPU_INSTANCES } from '../resources/instances/gpu-instance.ts';

/** Which way bytes take: straight to the pod, or through the API server and the kubelet. */
export type Way = 'direct' | 'exec';
const WAYS = ['direct', 'exec', 'unreachable', 'none'] as const;

/** Who is connected: the part of every record that stays the same. */
export interface Login {
  namespace: string;
  instance: string;
  instanceUid: string;
  fingerprint: string;
  /** Id and serial number of the user's certificate, which the key with this fingerprint signed. */
  certificate: string | undefined;
  keyResource: string;
  address: string;
}

/** Who has a terminal open over HTTP, and where. */
export interface Visitor {
  namespace: string;
  instance: string;
  instanceUid: string;
  /** metadata.uid of the API key, or the id of a sign-in. */
  keyId: string;
  /** metadata.name of the API key, or the name of the person. */
  caller: string;
  address: string;
}

const SESSION_KINDS = ['shell', 'command', 'sftp', 'forward'] as const;
export type SessionKind = (typeof SESSION_KINDS)[number];

/** The end of a session or forward. */
export interface SessionRecord {
  event: 'session';
  login: Login;
  connection: string;
  kind: SessionKind;
  bytesIn: number;
  bytesOut: number;
  durationMs: number;
  /** Exit status; undefined for forwards. */
  status: number | undefined;
  /**
   * Which way its bytes took. `unreachable`: the instance runs, and the gateway did not reach it. Undefined when nothing
   * was to be started, as on an instance that is stopped.
   */
  way: Way | 'unreachable' | undefined;
}

/** What happened on the gateway. Never what was typed, sent or asked for. */
export type AuditRecord =
  | { event: 'login'; login: Login; connection: string }
  | { event: 'logout'; login: Login; connection: string; reason: string; durationMs: number }
  | SessionRecord
  | { event: 'terminal'; visitor: Visitor; connection: string }
  | {
      event: 'terminal-end';
      visitor: Visitor;
      connection: string;
      reason: string;
      bytesIn: number;
      bytesOut: number;
      durationMs: number;
      status: number;
    };

/** Takes records; must not throw and must not block. */
export type AuditSink = (record: AuditRecord) => void;

/**
 * Logs every record, and counts sessions by the way that their bytes took. Logins and terminals are also Events for the
 * instance's owner; the recorder counts repeats and drops floods.
 */
export function auditSink(log: Logger, events: EventRecorder, registry: Registry): AuditSink {
  const sessions = new Counter({
    name: 'berth_ssh_sessions_total',
    help: 'Sessions and forwards that ended, by the way of their bytes: direct to the pod, by exec through the API server, unreachable (the instance runs and was not reached), none (it does not run).',
    labelNames: ['kind', 'way'],
    registers: [registry],
  });
  // From 0 on: the first session that fails would not count as an increase of a series that begins with it.
  for (const kind of SESSION_KINDS) for (const way of WAYS) sessions.inc({ kind, way }, 0);
  function tell(where: Pick<Login, 'namespace' | 'instance' | 'instanceUid'>, reason: string, message: string): void {
    const object = { metadata: { name: where.instance, namespace: where.namespace, uid: where.instanceUid } };
    events.record<KubeObject>(GPU_INSTANCES, object, { type: 'Normal', reason, message });
  }
  return (record) => {
    log.info({ audit: record }, 'SSH audit');
    if (record.event === 'session') sessions.inc({ kind: record.kind, way: record.way ?? 'none' });
    if (record.event === 'login') {
      const { login } = record;
      const by = login.certificate === undefined ? '' : `certificate ${login.certificate} of `;
      tell(login, 'SSHLogin', `SSH login with ${by}${login.fingerprint}`);
    } else if (record.event === 'terminal') {
      const { visitor } = record;
      tell(visitor, 'TerminalOpened', `Terminal opened by ${visitor.caller}`);
    }
  };
}
