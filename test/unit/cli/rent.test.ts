import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { extended } from '../../../src/cli/commands/change.ts';
import type { FoundOffer, InstanceRecord } from '../../../src/wire/records.ts';
import type { Input } from '../../../src/cli/options.ts';
import { parseCommand } from '../../../src/cli/parse.ts';
import { fileOf, lifeOf, programOf, variablesOf } from '../../../src/cli/rent/body.ts';
import { progress } from '../../../src/cli/rent/progress.ts';
import { hasName, searchOf } from '../../../src/cli/rent/search.ts';
import { findCommand } from '../../../src/cli/table/commands.ts';

function read(...words: string[]): Input {
  const { command, args = [] } = findCommand(words) ?? {};
  if (command === undefined) throw new Error(`no command in ${words.join(' ')}`);
  return parseCommand(command, args);
}

const record = (changes: Partial<InstanceRecord>): InstanceRecord =>
  ({
    id: 'i-1',
    state: 'pending',
    reason: 'Pending',
    message: '',
    stages: {},
    created_at: '2026-01-01T00:00:00Z',
    place_in_line: null,
    price_per_hour: null,
    ...changes,
  }) as InstanceRecord;

describe('the body of a rental', () => {
  it('has what the options say and nothing else', async () => {
    const words = [
      'rent',
      '-e',
      'A=1=2',
      '-e',
      'FROM_HERE',
      '-p',
      '8000',
      '-p',
      '53/udp',
      '--disk',
      '40',
      '--',
      'x',
      '-y',
    ];
    expect(await programOf(read(...words), { FROM_HERE: 'here' })).toEqual({
      env: { A: '1=2', FROM_HERE: 'here' },
      ports: [{ container_port: 8000 }, { container_port: 53, protocol: 'udp' }],
      disk_gb: 40,
      args: ['x', '-y'],
    });
    expect(await programOf(read('rent'), {})).toEqual({});
    expect(lifeOf(read('set', 'i-1', '--max-duration', 'none', '--key', '7'), true)).toEqual({
      max_duration: null,
      ssh_key_ids: [7],
    });
  });

  it('names no variable that has no value, and repeats no line of a file of secrets', async () => {
    await expect(programOf(read('rent', '-e', 'NOT_HERE'), {})).rejects.toThrow('--env NOT_HERE has no value');
    expect(variablesOf('# a comment\nA=b c\n\nB=\r\n')).toEqual([
      ['A', 'b c'],
      ['B', ''],
    ]);
    expect(() => variablesOf('A=1\nhunter2\n')).toThrow(/^Variable 2 of --env-file has no =\.$/);
    await expect(programOf(read('rent', '--env-file', '/nowhere'), {})).rejects.toThrow('--env-file: ENOENT');
  });

  it('reads files as Windows writes them, and changes no byte of others without a word', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-files-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = (bytes: Buffer): string => {
      writeFileSync(join(folder, 'file'), bytes);
      return join(folder, 'file');
    };
    expect(await fileOf('file', file(Buffer.from('\ufeff{"a": "\u00e9"}\r\n')))).toBe('{"a": "\u00e9"}\r\n');
    await expect(fileOf('on-start', file(Buffer.from('echo J\xf6rg', 'latin1')))).rejects.toThrow('not text in UTF-8');
  });

  it('asks for memory as data sheets write it, and for names in any case', () => {
    const search = searchOf(read('rent', '--memory', '24', '--gpus', '2', '--interruptible'));
    expect(search).toEqual({ min_gpu_memory_mb: 22_888, gpu_count: 2, type: 1 });
    const offer = { gpu_name: 'NVIDIA-H100-80GB-HBM3' } as FoundOffer;
    expect(['h100', 'H100 80gb', 'a100', 'hbm3-h100'].map((text) => hasName(offer, text))).toEqual([
      true,
      true,
      false,
      true,
    ]);
    // Whole words: an L4 is no L40S, and an A10 no A100. What follows each other may be one word.
    const named = (name: string, text: string): boolean => hasName({ gpu_name: name }, text);
    expect([
      named('NVIDIA-L40S', 'l4'),
      named('NVIDIA-A100-SXM4-80GB', 'a10'),
      named('NVIDIA-A100-SXM4-80GB', ''),
    ]).toEqual([false, false, false]);
    const rtx = 'NVIDIA-GeForce-RTX-4090';
    expect(['rtx4090', 'RTX 4090', '4090', 'geforce_rtx'].map((text) => named(rtx, text))).toEqual([
      true,
      true,
      true,
      true,
    ]);
  });
});

it('progress tells each stage once, and what a start waits for', () => {
  const claimed = record({
    reason: 'Starting',
    stages: { accepted: '2026-01-01T00:00:00Z', claimed: '2026-01-01T00:00:01.5Z' },
  });
  expect(progress(undefined, claimed)).toEqual(['  queued            0.0 s', '  GPU assigned      1.5 s']);
  expect(progress(claimed, claimed)).toEqual([]);
  const again = record({ ...claimed, stages: { ...claimed.stages, started: '2026-01-01T00:00:04Z' } });
  expect(progress(claimed, again, 'claimed')).toEqual(['  started           2.5 s']);
  const waits = record({ reason: 'WaitingForCapacity', message: 'No place\u001b is free.', place_in_line: 3 });
  expect(progress(record({}), waits)).toEqual(['  pending: No place? is free. Place in line: 3.']);
  expect(progress(waits, waits)).toEqual([]);
});

it('an extension adds to the longest time of a start', () => {
  expect([extended('1h', '30m'), extended('90m', '12h')]).toEqual(['1h30m', '13h30m']);
  // All that the server takes as the longest time of a start.
  for (const [now, more, sum] of [
    ['1.5h', '30m', '2h'],
    ['1h', '0.5h', '1h30m'],
    ['30m1h', '10m10m', '1h50m'],
    ['24h0m0.4s', '1s', '24h2s'],
  ] as const)
    expect(extended(now, more)).toBe(sum);
  for (const text of ['soon', '0s', '']) expect(() => extended('1h', text)).toThrow('is no time');
});
