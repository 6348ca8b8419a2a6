import { describe, expect, it } from 'vitest';
import { CliFailure, EXIT } from '../../../src/cli/failure.ts';
import { parseCommand } from '../../../src/cli/parse.ts';
import { COMMANDS, findCommand } from '../../../src/cli/table/commands.ts';
import type { Input } from '../../../src/cli/options.ts';

function read(line: string): Input {
  const { command, args } = findCommand(line.split(' ')) ?? {};
  if (command === undefined || args === undefined) throw new Error(`no command in ${line}`);
  return parseCommand(command, args);
}

function refusal(line: string): string {
  try {
    read(line);
  } catch (error) {
    if (error instanceof CliFailure && error.exitCode === EXIT.usage) return error.message;
    throw error;
  }
  return 'none';
}

describe('a command line', () => {
  it('has operands, options and words for the image', () => {
    const input = read('rent -g l4 --env A=1 --env B=2 --yes -- --model x');
    expect([input.text('gpu'), input.texts('env'), input.flag('yes'), input.rest]).toEqual([
      'l4',
      ['A=1', 'B=2'],
      true,
      ['--model', 'x'],
    ]);
    expect(read('keys add file').operands).toEqual(['file']);
    expect(read('cp a b c:').operands).toEqual(['a', 'b', 'c:']);
  });

  it('of ssh passes all words after the instance on, options too', () => {
    const input = read('ssh -L 1:a:2 -i key i-1 ls -la --help -- x');
    expect([input.operands, input.rest]).toEqual([['i-1'], ['ls', '-la', '--help', '--', 'x']]);
    expect(input.texts('forward')).toEqual(['1:a:2']);
    expect(read('ssh i-1 -- ls -l').rest).toEqual(['ls', '-l']);
    expect(read('ssh --config').operands).toEqual([]);
  });

  it.each([
    ['show', 'berth show needs INSTANCE.'],
    ['ls one', 'berth ls does not take one.'],
    ['rent --nothing', 'berth rent has no option --nothing.'],
    ['ls -- x', 'berth ls takes nothing after --.'],
    ['keys create', 'berth ssh-keys does not take create.'],
    ['extend i-1', 'berth extend needs TIME.'],
  ])('is refused: %s', (line, message) => {
    expect(refusal(line)).toContain(message);
  });

  it.each(['login https://gpu.example.com my-secret', 'registries add ghcr ghcr.io me my-secret'])(
    'that has a secret is refused without repeating it: %s',
    (line) => {
      const said = refusal(line);
      expect(said).toContain('on a command line others can read it');
      expect(said).not.toContain('my-secret');
    },
  );

  it('has whole numbers where numbers are meant', () => {
    expect(read('rent --gpus 2').number('gpus', 1)).toBe(2);
    for (const text of ['0', '-1', 'two', '1.5', '']) {
      expect(() => read(`rent --gpus=${text}`).number('gpus', 1), text).toThrow(/--gpus .* is not valid/);
    }
  });
});

it('no command has two options of one letter, and none takes a key or a password as an option', () => {
  for (const { name, options } of COMMANDS) {
    const letters = Object.values(options).flatMap(({ short }) => short ?? []);
    expect(letters.length, name).toBe(new Set([...letters, 'h']).size - 1);
    expect(
      Object.keys(options).filter((one) => /token|password|secret|api/.test(one)),
      name,
    ).toEqual([]);
  }
});
