import { CliFailure, EXIT, usageFailure } from './failure.ts';
import type { Session } from './session.ts';

/** What differs between the ways in. */
export interface Program {
  session: Session;
  version: () => string;
}

/** The words without the option that stands before the command, and the session that it chooses. */
async function withProfile(words: readonly string[], program: Program): Promise<[readonly string[], Program]> {
  const [, inline] = /^--profile=(.*)$/.exec(words[0] ?? '') ?? [];
  if (words[0] !== '--profile' && inline === undefined) return [words, program];
  const name = inline ?? words[1];
  if (name === undefined) throw usageFailure('--profile needs a name.', 'berth profiles lists them.');
  const { createSession } = await import('./session.ts');
  const { env, terminal } = program.session;
  // The login of a profile counts, and not that of the environment.
  const { BERTH_URL: _url, BERTH_API_KEY: _key, ...others } = env;
  const session = { ...program.session, ...createSession({ ...others, BERTH_PROFILE: name }, terminal) };
  return [words.slice(inline === undefined ? 2 : 1), { ...program, session }];
}

async function dispatch(given: readonly string[], program: Program): Promise<number> {
  const [words, { session, version }] = await withProfile(given, program);
  const [first = 'help'] = words;
  const { terminal } = session;
  if (first === '--version' || first === '-v' || first === 'version')
    return terminal.out(`${version()}\n`).then(() => EXIT.done);
  if (first === 'completion') {
    return terminal.out((await import('./complete.ts')).completionScript(words[1])).then(() => EXIT.done);
  }
  if (first === 'man') return terminal.out((await import('./manual.ts')).manual(version())).then(() => EXIT.done);
  if (first === '__complete') {
    const { complete } = await import('./complete.ts');
    const [asked, of] = await withProfile(words.slice(1), program).catch(() => [words.slice(1), program] as const);
    return terminal.out(await complete(asked.length === 0 ? words.slice(1) : asked, of.session)).then(() => EXIT.done);
  }
  const { findCommand } = await import('./table/commands.ts');
  const asked = first === 'help' && words.length > 1 ? [...words.slice(1), '--help'] : words;
  const found = findCommand(asked);
  if (found === undefined) {
    const isHelp = ['help', '--help', '-h'].includes(asked[0] ?? 'help');
    if (!isHelp) {
      const name = asked.find((word) => !word.startsWith('-')) ?? '';
      const { didYouMean } = await import('./nearest.ts');
      const { commandNames } = await import('./table/commands.ts');
      const next = didYouMean(name, commandNames(), (one) => `berth ${one}`) ?? 'berth --help lists the commands.';
      throw usageFailure(`There is no command berth ${name}.`, next);
    }
    await terminal.out((await import('./help.ts')).help(terminal.columns.out));
    return EXIT.done;
  }
  const { asksForHelp, parseCommand } = await import('./parse.ts');
  const { command, args } = found;
  if (asksForHelp(command, args)) {
    await terminal.out((await import('./help.ts')).helpOf(command, terminal.columns.out));
    return EXIT.done;
  }
  const input = parseCommand(command, args);
  try {
    return (await (await command.load())(input, session)) ?? EXIT.done;
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    const { explained } = await import('./explain.ts');
    throw explained(error, command, input);
  }
}

/** What the system of this machine said about a file, such as that nobody may write it; undefined for any other error. */
function refusalOfSystem(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('syscall' in error) || !('path' in error)) return undefined;
  return `${error.message.replace(/^[A-Z]+: /, '')}.`;
}

/** Runs a command line, and says on the terminal why it failed. Returns the exit status. */
export async function runCli(words: readonly string[], program: Program): Promise<number> {
  try {
    return await dispatch(words, program);
  } catch (error) {
    const { terminal } = program.session;
    if (error instanceof Error && error.name === 'OutputClosed') return EXIT.done;
    const refusal = refusalOfSystem(error);
    if (refusal !== undefined) {
      terminal.say(`berth: ${refusal}`);
      terminal.say('Repair that on this machine, and run the command again.');
      return EXIT.failed;
    }
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
