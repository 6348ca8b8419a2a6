import { COMMANDS, GROUPS } from './table/commands.ts';
import type { Command, Options } from './options.ts';
import { pairs } from './text.ts';
import { wrapped } from './width.ts';

/** Every command has it. */
export const HELP: Options = { help: { type: 'boolean', short: 'h', help: 'print this' } };

const ABOUT = 'Rents GPUs of a Berth server. berth COMMAND --help has its options.';

/** What holds for all commands. */
export const TAIL_LINES = [
  'The server and the key are those of berth login, or BERTH_URL and BERTH_API_KEY.',
  '--profile NAME before the command, or BERTH_PROFILE, chooses another login.',
  'Networks: HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE, NODE_EXTRA_CA_CERTS.',
  'Exit status: 0 done, 1 refused or failed, 2 wrong usage, 3 no access,',
  '4 not found, 5 no free GPU, 6 server not reached or too busy,',
  '125 the end of a run is not known, 130 interrupted.',
];

const OTHERS: readonly (readonly [name: string, summary: string])[] = [
  ['completion SHELL', 'print a completion script for bash, zsh or fish'],
  ['man', 'print the manual page: berth man | man -l -'],
  ['help, --help', 'print this'],
  ['version, -v', 'print the version'],
];

export function usageOf({ name, operands }: Command): string {
  return [name, ...operands].join(' ');
}

const WIDTH_OF_NAMES = 20;

/** Names and what they do, indented, in lines that go on below where the screen ends. */
function listed(rows: readonly (readonly [name: string, text: string])[], width: number | undefined): string {
  return pairs(
    rows.map(([name, text]) => [`  ${name}`.padEnd(WIDTH_OF_NAMES + 1), text]),
    width,
  );
}

/** What `berth --help` prints, on a screen of that width. */
export function help(width?: number): string {
  const groups = GROUPS.map(
    ([title, commands]) => [title, commands.map(({ name, summary }) => [name, summary] as const)] as const,
  );
  const lists = [...groups, ['Other', OTHERS] as const].map(([title, rows]) => `\n${title}\n${listed(rows, width)}`);
  const fit = (line: string): string => wrapped(line, width ?? Infinity).join('\n');
  return `Usage: berth COMMAND\n\n${fit(ABOUT)}\n${lists.join('')}\n${TAIL_LINES.map(fit).join('\n')}\n`;
}

/** What `berth COMMAND --help` prints. */
export function helpOf(command: Command, screen?: number): string {
  const options = Object.entries({ ...command.options, ...HELP });
  const rows = options.map(([name, option]) => {
    const value = option.value === undefined ? '' : ` ${option.value}`;
    return [`  ${option.short === undefined ? '   ' : `-${option.short},`} --${name}${value}`, option.help] as const;
  });
  const below = COMMANDS.filter(({ name }) => name.startsWith(`${command.name} `));
  const title = command.summary.charAt(0).toUpperCase() + command.summary.slice(1);
  return [
    `Usage: berth ${usageOf(command)} [OPTION...]\n\n${title}.\n`,
    command.aliases === undefined ? '' : `Also: ${command.aliases.map((one) => `berth ${one}`).join(', ')}\n`,
    `\nOptions\n${pairs(rows, screen)}`,
    below.length === 0 ? '' : `\nSee also\n${below.map((one) => `  berth ${usageOf(one)}: ${one.summary}\n`).join('')}`,
    command.examples === undefined ? '' : `\nExamples\n${command.examples.map((line) => `  ${line}\n`).join('')}`,
  ].join('');
}
