import type { Command, Option } from './options.ts';
import { HELP, TAIL_LINES, usageOf } from './help.ts';
import { GROUPS } from './table/commands.ts';

/** Text for roff: no line of it is a request, and no backslash an escape. */
function roff(text: string): string {
  return text
    .replaceAll('\\', String.raw`\e`)
    .replaceAll('-', String.raw`\-`)
    .replace(/^[.']/, String.raw`\&$&`);
}

function optionOf([name, { short, value, help }]: [string, Option]): string {
  const names = [...(short === undefined ? [] : [`-${short}`]), `--${name}`]
    .map((one) => `\\fB${roff(one)}\\fR`)
    .join(', ');
  return `.TP\n${names}${value === undefined ? '' : ` \\fI${roff(value)}\\fR`}\n${roff(help)}\n`;
}

function commandOf(command: Command): string {
  const also = command.aliases === undefined ? '' : ` (also ${command.aliases.join(', ')})`;
  const examples = (command.examples ?? []).map((line) => `${roff(line)}\n.br\n`).join('');
  return [
    `.SS berth ${roff(usageOf(command))}\n`,
    `${roff(command.summary.charAt(0).toUpperCase() + command.summary.slice(1))}${roff(also)}.\n`,
    ...Object.entries({ ...command.options, ...HELP }).map(optionOf),
    examples === '' ? '' : `.PP\n.nf\n${examples}.fi\n`,
  ].join('');
}

/** The manual page, for man(7): `berth man | man -l -`. */
export function manual(version: string): string {
  const groups = GROUPS.map(([title, commands]) => `.SH ${title.toUpperCase()}\n${commands.map(commandOf).join('')}`);
  return [
    `.TH BERTH 1 "" "berth ${roff(version)}"\n`,
    '.SH NAME\nberth \\- rents GPUs of a Berth server\n',
    '.SH SYNOPSIS\n\\fBberth\\fR [\\fB\\-\\-profile\\fR \\fINAME\\fR] \\fICOMMAND\\fR [\\fIOPTION\\fR...]\n',
    ...groups,
    `.SH ENVIRONMENT\n${TAIL_LINES.map((line) => `${roff(line)}\n`).join('')}`,
  ].join('');
}
