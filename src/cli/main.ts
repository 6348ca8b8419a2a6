import { CliFailure, EXIT, usageFailure } from './failure.ts';
import type { Session } from './session.ts';

/** What differs between the ways in. */
export interface Program {
  session: Session;
  version: () => string;
}

async function dispatch(words: readonly string[], { session, version }: Program): Promise<number> {
  const [first = 'help'] = words;
  const { terminal } = session;
  if (first === '--version') return terminal.out(`${version()}\n`).then(() => EXIT.done);
  if (first === 'completion') {
    return terminal.out((await import('./complete.ts')).completionScript(words[1])).then(() => EXIT.done);
  }
  if (first === '__complete') {
    return terminal.out(await (await import('./complete.ts')).complete(words.slice(1), session)).then(() => EXIT.done);
  }
  const { findCommand } = await import('./table/commands.ts');
  const asked = first === 'help' && words.length > 1 ? [...words.slice(1), '--help'] : words;
  const found = findCommand(asked);
  if (found === undefined) {
    const isHelp = ['help', '--help', '-h'].includes(asked[0] ?? 'help');
    if (!isHelp) {
      const name = asked.find((word) => !word.startsWith('-')) ?? '';
      throw usageFailure(`There is no command berth ${name}.`, 'berth --help lists the commands.');
    }
    await terminal.out((await import('./help.ts')).help());
    return EXIT.done;
  }
  const { asksForHelp, parseCommand } = await import('./parse.ts');
  const { command, args } = found;
  if (asksForHelp(command, args)) {
    await terminal.out((await import('./help.ts')).helpOf(command));
    return EXIT.done;
  }
  const input = parseCommand(command, args);
  return (await (await command.load())(input, session)) ?? EXIT.done;
}

/** Runs a command line, and says on the terminal why it failed. Returns the exit status. */
export async function runCli(words: readonly string[], program: Program): Promise<number> {
  try {
    return await dispatch(words, program);
  } catch (error) {
    const { terminal } = program.session;
    if (error instanceof Error && error.name === 'OutputClosed') return EXIT.done;
    if (!(error instanceof CliFailure)) {
      terminal.say(`berth: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      terminal.say('This is a fault of berth. Report it with the lines above.');
      return EXIT.failed;
    }
    terminal.say(`berth: ${error.message}`);
    if (error.next !== undefined) terminal.say(error.next);
    return error.exitCode;
  }
}
