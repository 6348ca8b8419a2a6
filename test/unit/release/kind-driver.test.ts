import { describe, expect, it } from 'vitest';
import { kindConfig } from '../../e2e/support/kind-driver.ts';

describe('kindConfig', () => {
  it('lets the API server of kind write its audit log where the test reads it', () => {
    const text = JSON.stringify(kindConfig('/tmp/audit'));
    expect(text).toContain('"hostPath":"/tmp/audit"');
    expect(text).toContain('audit-log-path');
    expect(text).toContain('/var/log/berth-audit/audit.log');
  });
});
