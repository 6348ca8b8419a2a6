import { ApiFailure } from './api/failures.ts';
import { CliFailure, usageFailure } from './failure.ts';
import type { Command, Input } from './options.ts';
import { plain } from './text.ts';

/** A word that a shell takes as it is. */
const BARE = /^[\w.-]+$/;

/** The option that a field of a request came from. */
function optionOf({ options }: Command, path: string): string | undefined {
  const [root = ''] = path.split(/[.[]/, 1);
  return Object.keys(options).find((name) => (options[name]?.field ?? name.replaceAll('-', '_')) === root);
}

/** What a server says of fields, said of the options that they came from; undefined where it says something else. */
function wrongOptions(error: CliFailure, command: Command): string | undefined {
  if (!(error instanceof ApiFailure) || error.fields.length === 0) return undefined;
  const said = error.fields.slice(0, 5).map(({ path, expected }) => {
    const option = optionOf(command, path);
    return option && `--${option}: ${plain(expected).replace(/\.$/, '')}.`;
  });
  return said.includes(undefined) ? undefined : `The command line is not valid. ${said.join(' ')}`;
}

/** A failure in the words of the command line that was typed: its command, its options, its instance. */
export function explained(error: CliFailure, command: Command, { operands }: Pick<Input, 'operands'>): CliFailure {
  const [instance = '', ...more] = operands;
  const isOne = command.repeats !== true || more.length === 0;
  const isInstance = /^\[?INSTANCE/.test(command.operands[0] ?? '') && isOne && BARE.test(instance);
  const next = error.next
    ?.replaceAll('berth COMMAND', `berth ${command.name}`)
    .replaceAll(/\bINSTANCE\b/g, isInstance ? instance : 'INSTANCE');
  const wrong = wrongOptions(error, command);
  return wrong === undefined
    ? new CliFailure(error.message, { exitCode: error.exitCode, next })
    : usageFailure(wrong, next);
}
