import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type ClusterRecord, readRecord, writeRecord } from '../../../tools/cluster/supervisor/record.ts';
import { clearState } from '../../../tools/cluster/supervisor/supervise.ts';
import { tryLock } from '../../../tools/lib/lock.ts';

let state = '';
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'berth state '));
});
afterEach(() => {
  rmSync(state, { recursive: true });
});

const ENDED: ClusterRecord = { supervisor: { pid: 4_194_304, startedAt: '1' }, phase: 'stopping', way: 'built' };

it('a cluster that was told to end is cleared away with its record, and frees its lock', async () => {
  writeRecord(state, ENDED);
  expect(await clearState(state, ENDED)).toEqual([]);
  expect(readRecord(state)).toBeUndefined();
  expect(tryLock(join(state, 'supervisor.lock'))).toHaveProperty('release');
});

it('one that starts in its place meanwhile keeps its lock and its record', async () => {
  const lock = tryLock(join(state, 'supervisor.lock'));
  if (!('release' in lock)) throw new Error('The lock of a new folder is held.');
  const next = { ...ENDED, supervisor: { pid: process.pid, startedAt: '2' }, phase: 'starting' as const };
  writeRecord(state, next);
  expect(await clearState(state, ENDED)).toBeUndefined();
  expect(readRecord(state)).toEqual(next);
  expect(tryLock(join(state, 'supervisor.lock'))).toMatchObject({ pid: process.pid });
});
