import { parseArgs } from 'node:util';
import { usageFailure } from './failure.ts';
import { wrongForm } from './forms.ts';
import { didYouMean } from './nearest.ts';
import type { Command, Input } from './options.ts';

const HELP = { help: { type: 'boolean', short: 'h' } } as const;

/** Whether the words before the rest ask for help. */
export function asksForHelp(command: Command, args: readonly string[]): boolean {
  return split(command, args).own.some((word) => word === '--help' || word === '-h');
}

function parserOptions({ options }: Command) {
  const known = Object.entries(options).map(([name, { type, short, multiple }]) => [
    name,
    { type, ...(short && { short }), ...(multiple && { multiple }) },
  ]);
  return { ...(Object.fromEntries(known) as Record<string, { type: 'string' | 'boolean'; short?: string }>), ...HELP };
}

/** The words that the command reads itself, and those that it passes on. */
function split(command: Command, args: readonly string[]): { own: string[]; rest: string[] } {
  const { tokens } = parseArgs({
    args: [...args],
    options: parserOptions(command),
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const terminator = tokens.find(({ kind }) => kind === 'option-terminator');
  const last = command.passesOn ? tokens.find(({ kind }) => kind === 'positional') : undefined;
  const end = Math.min(terminator?.index ?? args.length, last === undefined ? args.length : last.index + 1);
  const rest = args.slice(end);
  return { own: args.slice(0, end), rest: rest[0] === '--' ? rest.slice(1) : rest };
}

function checkOperands({ name, operands, repeats, hint, secret }: Command, given: readonly string[]): void {
  const required = operands.filter((word) => !word.startsWith('['));
  const missing = required[given.length];
  const next = hint ?? `Run berth ${name} --help.`;
  if (missing !== undefined) throw usageFailure(`berth ${name} needs ${missing.replace('...', '')}.`, next);
  if (repeats || given.length <= operands.length) return;
  if (secret === undefined) throw usageFailure(`berth ${name} does not take ${given.at(-1)}.`, next);
  throw usageFailure(
    `berth ${name} takes the ${secret} from the terminal or from its input: on a command line others can read it, and the shell keeps it.`,
    `If the ${secret} was among these words, revoke it and make another. Then run: berth ${[name, ...operands].join(' ')}`,
  );
}

/** Reads the words after the name of a command. Throws a usage failure that says what is not valid. */
export function parseCommand(command: Command, args: readonly string[]): Input {
  const { own, rest } = split(command, args);
  const { values, positionals } = parse(command, own);
  const value = (name: string): unknown => values[name];
  const isJson = values['output'] === 'json' && command.options['output']?.values?.includes('json') === true;
  const takesRest = command.passesOn || command.operands.at(-1) === '[-- WORD...]';
  if (rest.length > 0 && !takesRest) {
    throw usageFailure(`berth ${command.name} takes nothing after --.`, `Run berth ${command.name} --help.`);
  }
  checkValues(command, values);
  checkForms(command, values);
  checkOperands({ ...command, operands: command.operands.filter((word) => !word.startsWith('[--')) }, positionals);
  const text = (name: string): string | undefined => {
    const found = value(name);
    return typeof found === 'string' ? found : undefined;
  };
  return {
    operands: positionals,
    rest,
    flag: (name) => value(name) === true || (name === 'json' && isJson),
    text,
    texts: (name) => {
      const found = value(name);
      return Array.isArray(found) ? found.map(String) : [];
    },
    number: (name) => {
      const found = text(name);
      return found === undefined ? undefined : Number(found);
    },
  };
}

function parse(command: Command, args: string[]): { values: Record<string, unknown>; positionals: string[] } {
  try {
    return parseArgs({ args, options: parserOptions(command), allowPositionals: true });
  } catch (error) {
    const help = `Run berth ${command.name} --help.`;
    const [said] = (error instanceof Error ? error.message : String(error)).split(/\. To specify|\n/);
    const [, unknown] = /^Unknown option '--(.*)'$/.exec(said ?? '') ?? [];
    if (unknown !== undefined) {
      const known = [...Object.keys(command.options), 'help'];
      const next = didYouMean(unknown, known, (one) => `--${one}`) ?? help;
      throw usageFailure(`berth ${command.name} has no option --${unknown}.`, next);
    }
    const [, bare] =
      /^Option '(?:-\w, )?--(\S+?)(?: <value>)?' argument (?:missing|is ambiguous)\.?$/.exec(said ?? '') ?? [];
    const { value = 'VALUE' } = command.options[bare ?? ''] ?? {};
    if (bare !== undefined) throw usageFailure(`--${bare} needs a value: write --${bare} ${value}.`, help);
    throw usageFailure(`${said?.replace(/\.$/, '')}.`, help);
  }
}

/** Refuses values other than those that an option lists. */
function checkValues({ options }: Command, values: Record<string, unknown>): void {
  for (const [name, { values: known }] of Object.entries(options)) {
    const given = values[name];
    if (known === undefined || typeof given !== 'string' || known.includes(given)) continue;
    throw usageFailure(`--${name} ${given} is not valid: write ${known.join(' or ')}.`, didYouMean(given, known));
  }
}

/** Refuses values that are written in another form than those of an option. */
function checkForms({ options, clears }: Command, values: Record<string, unknown>): void {
  for (const [name, { form, least }] of Object.entries(options)) {
    if (form === undefined) continue;
    for (const given of [values[name]].flat()) {
      if (typeof given !== 'string' || (clears === true && given === 'none')) continue;
      const write = wrongForm(form, given, least);
      if (write !== undefined)
        throw usageFailure(`--${name} ${given} is not valid: write ${write}${clears === true ? ', or none' : ''}.`);
    }
  }
}
