import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tryLock } from '../../../tools/lib/lock.ts';
import { identify, isAlive, parseStat } from '../../../tools/lib/process-identity.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-lock-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

describe('tryLock', () => {
  it('tells who holds the lock until it is released', () => {
    const path = join(folder, 'lock');
    const first = tryLock(path);
    expect(tryLock(path)).toMatchObject({ pid: process.pid });
    if ('release' in first) first.release();
    expect(tryLock(path)).toHaveProperty('release');
    expect(readdirSync(folder)).toEqual(['lock']);
  });

  it.each([
    ['a process that is gone', JSON.stringify({ pid: 4_194_304, startedAt: '1' })],
    ['a process whose number another one has now', JSON.stringify({ pid: process.pid, startedAt: 'earlier' })],
    ['a half-written file', '{"pid": 12'],
  ])('takes over the lock of %s', (_what, content) => {
    const path = join(folder, 'lock');
    writeFileSync(path, content);
    expect(tryLock(path)).toHaveProperty('release');
  });
});

describe('process identity', () => {
  it('knows this process as alive, and not one that started at another time', () => {
    const self = identify(process.pid);
    expect(self !== undefined && isAlive(self)).toBe(true);
    expect(isAlive({ pid: process.pid, startedAt: 'another time' })).toBe(false);
  });

  it('reads the start time behind a command with spaces and parentheses, and takes a zombie for dead', () => {
    const rest = Array.from({ length: 18 }, (_, index) => index).join(' ');
    expect(parseStat(`12 (a ) b (c) S ${rest} 4711 0`)).toBe('4711');
    expect(parseStat(`12 (a) Z ${rest} 4711 0`)).toBeUndefined();
  });
});
