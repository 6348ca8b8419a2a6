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
