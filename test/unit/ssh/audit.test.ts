import pino from 'pino';
import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { auditSink, type SessionRecord } from '../../../src/ssh/audit.ts';
import type { EventRecorder } from '../../../src/kube/events.ts';

const RECORD: SessionRecord = {
  event: 'session',
  login: {
    namespace: 'team',
    instance: 'i-one',
    instanceUid: 'u',
    fingerprint: 'SHA256:x',
    certificate: undefined,
    keyResource: 'team/k',
    address: '192.0.2.1',
  },
  connection: 'c',
  kind: 'command',
  bytesIn: 1,
  bytesOut: 2,
  durationMs: 3,
  status: 0,
  way: 'direct',
};

it('the end of a session is logged and counted with its way', async () => {
  const lines: string[] = [];
  const registry = new Registry();
  const log = pino({}, { write: (line) => lines.push(line) });
  const audit = auditSink(log, {} as EventRecorder, registry);
  audit(RECORD);
  audit(RECORD);
  audit({ ...RECORD, kind: 'forward', way: 'exec' });
  audit({ ...RECORD, way: undefined });
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ audit: { way: 'direct', kind: 'command' } });
  const metrics = await registry.metrics();
  expect(metrics).toContain('berth_ssh_sessions_total{kind="command",way="direct"} 2');
  expect(metrics).toContain('berth_ssh_sessions_total{kind="forward",way="exec"} 1');
  expect(metrics).toContain('berth_ssh_sessions_total{kind="command",way="none"} 1');
  // Who logged in is for the log alone.
  expect(metrics).not.toMatch(/team|192\.0\.2\.1/);
});
