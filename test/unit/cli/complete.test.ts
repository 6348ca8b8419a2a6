import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { completionScript, wordsFor } from '../../../src/cli/complete.ts';
import { help, helpOf } from '../../../src/cli/help.ts';
import { storeAccess } from '../../../src/cli/settings.ts';
import { berth, json, list } from '../../support/scripted-cli.ts';
import { COMMANDS } from '../../../src/cli/table/commands.ts';
import { run } from '../../../tools/lib/shell.ts';

it('commands, second words, options and shells are completed', () => {
  expect(wordsFor([], 'l')).toEqual(['login', 'logout', 'ls', 'logs']);
  expect(wordsFor(['keys'], '')).toEqual(['add', 'rm']);
  expect(wordsFor(['rent'], '--gp')).toEqual(['--gpu', '--gpus']);
  expect(wordsFor(['completion'], '')).toEqual(['bash', 'zsh', 'fish']);
  expect(wordsFor(['rent', '--'], '--gp')).toEqual([]);
  expect(wordsFor(['nothing'], '')).toEqual([]);
  expect(wordsFor(['help'], 'sho')).toEqual(['show']);
});

it('values, and what options and operands name, are completed', async () => {
  const complete = async (words: string[], ...data: object[]): Promise<string[]> => {
    const { code, out, said } = await berth(['__complete', ...words], [list(...data)]);
    expect([code, said]).toEqual([0, '']);
    return out.split('\n').slice(0, -1);
  };
  expect(await complete(['set', 'i-1', '--on-expiry', ''])).toEqual(['stop', 'delete']);
  expect(await complete(['usage', '--by', 'd'])).toEqual(['day']);
  expect(await complete(['rent', '-g', ''], { gpu_name: 'NVIDIA-L4' }, { gpu_name: 'NVIDIA-L4' })).toEqual([
    'NVIDIA-L4',
  ]);
  expect(await complete(['chat', '-m', 'Q'], { id: 'Qwen/Qwen3' }, { id: 'other' })).toEqual(['Qwen/Qwen3']);
  const instances = [
    { id: 'i-1', name: 'train' },
    { id: 'i-2', name: 'two words; rm' },
  ];
  expect(await complete(['ssh', ''], ...instances)).toEqual(['i-1', 'train', 'i-2']);
  expect(await complete(['rm', 'i-1', 't'], ...instances)).toEqual(['train']);
  expect(await complete(['show', 'i-1', ''], ...instances)).toEqual([]);
  const key = { id: 7, name: 'laptop' };
  expect(await complete(['keys', 'rm', ''], key)).toEqual(['7', 'laptop']);
  // An option of ids takes no names.
  expect(await complete(['rent', '--key', ''], key)).toEqual(['7']);
  expect(await complete(['rent', '--kind', 'm'])).toEqual(['mig']);
  expect(await complete(['templates', 'show', 'tr'], { id: 7, name: 'train' })).toEqual(['train']);
  expect(await complete(['run', '--gpu', 'l4', '--', ''], ...instances)).toEqual([]);
  expect(await complete(['rent', '--offer', ''], { id: 7 }, { id: 8 })).toEqual(['7', '8']);
  expect(await complete(['webhooks', 'add', 'https://x', '--event', 'budget.'])).toEqual([
    'budget.near',
    'budget.spent',
  ]);
  expect(await complete(['--v'])).toEqual(['--version']);
});

it('a value is completed after = too, in the words of bash and in that of other shells', async () => {
  const complete = async (...words: string[]) =>
    (await berth(['__complete', ...words], [list({ id: 7, gpu_name: 'NVIDIA-L4' })])).out;
  expect(await complete('set', 'i-1', '--on-expiry', '=')).toBe('stop\ndelete\n');
  expect(await complete('set', 'i-1', '--on-expiry', '=', 'd')).toBe('delete\n');
  expect(await complete('set', 'i-1', '--on-expiry=d')).toBe('--on-expiry=delete\n');
  expect(await complete('rent', '--gpu=N')).toBe('--gpu=NVIDIA-L4\n');
  expect(await complete('set', 'i-1', '--nothing=d')).toBe('');
});

it('ports of an instance, and servers that somebody signed in to, are completed', async () => {
  const ports = [{ container_port: 8000 }, { container_port: 7860 }];
  const { out, seen } = await berth(['__complete', 'open', 'i-1', ''], [json(200, { ports })]);
  expect([out, seen[0]?.line]).toEqual(['8000\n7860\n', 'GET /api/v1/instances/i-1']);
  const home = await mkdtemp(join(tmpdir(), 'berth-complete-'));
  onTestFinished(() => rm(home, { recursive: true }));
  await storeAccess({ HOME: home }, { url: 'https://gpu.example.com/api/v1', key: 'berth_one' });
  await storeAccess(
    { HOME: home, BERTH_PROFILE: 'odd' },
    { url: "https://x.example.com/$(a)'/api/v1", key: 'berth_two' },
  );
  expect((await berth(['__complete', 'login', ''], [json(200, {})], [], { env: { HOME: home } })).out).toBe(
    'https://gpu.example.com\n',
  );
});

it('every option whose values stand in a list or have a name is completed, and every first operand', () => {
  const known = COMMANDS.flatMap(({ name, options }) =>
    Object.entries(options).map(([option, { value, values, suggested, names }]) => ({
      option: `${name} --${option}`,
      isKnown: value === undefined || values !== undefined || suggested !== undefined || names !== undefined,
      value,
    })),
  );
  // What nobody has a list of: texts, numbers, times, files, and images.
  const FREE = /^(?:TEXT|N|GB|AMOUNT|TIME|DAY|FILE|FOLDER|PATTERN|PATH|IMAGE|NAME\[=TEXT\]|PORT.*)$/;
  expect(known.filter(({ isKnown, value = '' }) => !isKnown && !FREE.test(value))).toEqual([]);
});

it('the script of bash works in bash, where words have spaces and quotes', async () => {
  const lines = [
    'berth() { printf "%s\\n" "$#" "$3"; }',
    completionScript('bash'),
    "COMP_WORDS=(berth show 'a b'); COMP_CWORD=2; _berth; printf '%s,' \"${COMPREPLY[@]}\"",
  ];
  expect(await run('bash', ['-c', lines.join('\n')])).toMatchObject({ code: 0, stdout: '3,a b,', stderr: '' });
  expect(() => completionScript('toString')).toThrow('bash, zsh or fish');
});

it('help names every command, and that of a command all of its options', () => {
  for (const command of COMMANDS) {
    expect(help()).toContain(`\n  ${command.name} `);
    for (const name of Object.keys(command.options)) expect(helpOf(command)).toContain(`--${name}`);
  }
  const lines = [help(), ...COMMANDS.map((command) => helpOf(command))].flatMap((text) => text.split('\n'));
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
});
