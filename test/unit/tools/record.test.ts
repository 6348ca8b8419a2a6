import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { statusOf } from '../../../tools/cluster/commands.ts';
import { readRecord, writeRecord, type ClusterRecord } from '../../../tools/cluster/supervisor/record.ts';

let state = '';
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'berth-record-'));
});
afterEach(() => rmSync(state, { recursive: true }));

describe('the record of a cluster', () => {
  it('is read as it was written', () => {
    const record: ClusterRecord = { supervisor: { pid: 1, startedAt: '2' }, phase: 'ready' };
    writeRecord(state, record);
    expect(readRecord(state)).toEqual(record);
  });

  it('is none where there is none, or none of ours', () => {
    expect(readRecord(state)).toBeUndefined();
    for (const text of ['', '{"supervisor"', '{}', '{"supervisor":{"pid":"1"}}']) {
      writeFileSync(join(state, 'supervisor.json'), text);
      expect(readRecord(state)).toBeUndefined();
    }
  });

  it('says so when it cannot be read, rather than that no cluster runs', () => {
    mkdirSync(join(state, 'supervisor.json'));
    expect(() => readRecord(state)).toThrow(
      expect.objectContaining({
        name: 'LocalFailure',
        message: `${state}/supervisor.json cannot be read (EISDIR).`,
        remedy: expect.stringContaining('as the user who started the cluster') as string,
      }),
    );
  });
});

describe('the status of a cluster', () => {
  const supervisor = { pid: 12, startedAt: '2' };

  it.each<[node: string, what: string, record: Partial<ClusterRecord>]>([
    ['yes', 'a node of kind', { way: 'kind' }],
    ['yes', 'a node in namespaces of its own', { way: 'built', initPid: 34 }],
    ['no', 'simulated nodes alone', { way: 'built' }],
    ['no', 'a way that is still to be chosen', {}],
  ])('says %s to containers that are real on %s', (node, _what, record) => {
    expect(statusOf({ supervisor, phase: 'ready', ...record })).toMatch(new RegExp(`^Real node   ${node}$`, 'm'));
  });
});
