import type { Form } from './forms.ts';
import type { Session } from './session.ts';

/** An option of a command, for parsing, help and completion. */
export interface Option {
  type: 'string' | 'boolean';
  short?: string;
  multiple?: boolean;
  /** What stands for the value in help. */
  value?: string;
  /** All values that it takes, for completion and for a refusal of others. */
  values?: readonly string[];
  /** Values for completion; others are taken too. */
  suggested?: readonly string[];
  /** What its values name, for completion. */
  names?: Names;
  /** How its values are written: others are refused before anything is asked. */
  form?: Form;
  /** The least number of the form count; by default 1. */
  least?: number;
  /** Its field in what is sent to the server, where that has another name. */
  field?: string;
  help: string;
}

/** What the words of a command line may name. */
export type Names =
  | 'instance'
  | 'offer'
  | 'gpu'
  | 'key'
  | 'ssh-key'
  | 'template'
  | 'registry'
  | 'webhook'
  | 'model'
  | 'profile'
  | 'port'
  | 'address';

export type Options = Readonly<Record<string, Option>>;

/** A command line that was read. */
export interface Input {
  operands: readonly string[];
  /** Words for another program: after `--`, or after the first operand of a command that passes the rest on. */
  rest: readonly string[];
  flag(name: string): boolean;
  text(name: string): string | undefined;
  texts(name: string): readonly string[];
  /** The number of an option of the form count. */
  number(name: string): number | undefined;
}

/** Does the work of a command. Its number is the exit status; without one it is 0. */
export type Run = (input: Input, session: Session) => Promise<number | void>;

export interface Command {
  /** One or two words. */
  name: string;
  summary: string;
  /** The operands as help writes them; those in brackets may be absent. */
  operands: readonly string[];
  /** Takes more operands like the last one. */
  repeats?: boolean;
  /** Everything after the first operand goes to another program unread. */
  passesOn?: boolean;
  options: Options;
  examples?: readonly string[];
  /** Older names of the same command. */
  aliases?: readonly string[];
  /** What its operands name, for completion. */
  names?: Names;
  /** The next step after a wrong line, in place of its help. */
  hint?: string;
  /** The value none is one of every option. */
  clears?: boolean;
  /** What it reads from the terminal and takes from no command line: an operand too many may be this. */
  secret?: string;
  load: () => Promise<Run>;
}

export const JSON_OPTION: Options = {
  json: { type: 'boolean', help: 'print JSON for programs' },
  output: { type: 'string', short: 'o', value: 'FORMAT', values: ['json'], help: 'json, as --json' },
};
/** Of commands that print a table. */
export const LIST_OPTIONS: Options = {
  ...JSON_OPTION,
  output: {
    type: 'string',
    short: 'o',
    value: 'FORMAT',
    values: ['json', 'wide', 'name'],
    help: 'json, wide (all columns) or name (only ids)',
  },
};
export const YES: Options = { yes: { type: 'boolean', short: 'y', help: 'do it without a question' } };
