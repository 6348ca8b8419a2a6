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
    expect(read('rent --gpus 2').number('gpus')).toBe(2);
    for (const text of ['0', '-1', 'two', '1.5', '']) {
      expect(() => read(`rent --gpus=${text}`), text).toThrow(/--gpus .* is not valid/);
    }
  });

  it.each([
    ['rent --max-duration 12', '--max-duration 12 is not valid: write a time such as 90m or 12h.'],
    ['rent --idle-timeout soon', '--idle-timeout soon is not valid: write a time such as 90m or 12h.'],
    ['rent --idle-timeout none', '--idle-timeout none is not valid: write a time such as 90m or 12h.'],
    ['set i-1 --idle-timeout soon', '--idle-timeout soon is not valid: write a time such as 90m or 12h, or none.'],
    ['offers --max-price cheap', '--max-price cheap is not valid: write an amount such as 1.50.'],
    ['offers --max-price 1,50', '--max-price 1,50 is not valid: write an amount such as 1.50.'],
    ['offers --memory 80GB', '--memory 80GB is not valid: write a whole number of 1 or more.'],
    ['run --disk 0', '--disk 0 is not valid: write a whole number of 1 or more.'],
    ['rent --offer h100', '--offer h100 is not valid: write an id, which is a number.'],
    ['rent --key 1 --key laptop', '--key laptop is not valid: write an id, which is a number.'],
    ['logs i-1 --tail -1', '--tail needs a value: write --tail N.'],
    ['logs i-1 --tail=-1', '--tail -1 is not valid: write a whole number of 0 or more.'],
    ['logs i-1 --start 0', '--start 0 is not valid: write a whole number of 1 or more.'],
    [
      'logs i-1 --since yesterday',
      '--since yesterday is not valid: write a time such as 10m, or 2026-11-01T12:00:00Z.',
    ],
    ['usage --since yesterday', '--since yesterday is not valid: write a day such as 2026-11-01.'],
    ['usage --until 2026-02-30', '--until 2026-02-30 is not valid: write a day such as 2026-11-01.'],
    ['usage --by month', '--by month is not valid: write instance or day or key or starter or model.'],
  ])('has no value of another form: %s', (line, message) => {
    expect(refusal(line)).toBe(message);
  });

  it.each([
    'rent --max-duration 1h30m --idle-timeout 0.5h --max-price 2 --offer 0 --key 7',
    'set i-1 --idle-timeout none --max-duration none --max-price none --key none',
    'logs i-1 --tail 0 --since 90s',
    'logs i-1 --since 2026-11-01T12:00:00.5+02:00',
    'usage --since 2028-02-29 --by starter',
  ])('has what the server takes: %s', (line) => {
    expect(refusal(line)).toBe('none');
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
