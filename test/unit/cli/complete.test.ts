import { expect, it } from 'vitest';
import { completionScript, wordsFor } from '../../../src/cli/complete.ts';
import { help, helpOf } from '../../../src/cli/help.ts';
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
  const lines = [help(), ...COMMANDS.map(helpOf)].flatMap((text) => text.split('\n'));
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
});
