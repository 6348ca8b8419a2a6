import type { InstanceRecord, List } from '../wire/records.ts';
import { instancePath } from './api/find-instance.ts';
import { COMMANDS, findCommand } from './table/commands.ts';
import { usageFailure } from './failure.ts';
import type { Command, Names, Option } from './options.ts';
import { profilesOf, storedAccess } from './settings.ts';
import type { Session } from './session.ts';

const SHELLS = ['bash', 'zsh', 'fish'];

/** Each asks the program itself, so that the script need not change with it. */
const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_berth() {
  local IFS=$'\\n'
  COMPREPLY=($(berth __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  if [[ "\${COMPREPLY[0]}" == *: ]]; then compopt -o nospace; fi
}
complete -o default -F _berth berth
`,
  zsh: `#compdef berth
_berth() {
  local -a found
  found=("\${(@f)$(berth __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  local -a places=("\${(@M)found:#*:}")
  found=("\${(@)found:#*:}")
  if (( $#places )); then compadd -S '' -a places; fi
  if [[ -n "$found" ]]; then compadd -a found; elif (( ! $#places )); then _files; fi
}
if [[ "$funcstack[1]" = _berth ]]; then _berth; else compdef _berth berth; fi
`,
  // Its condition comes first and keeps what it found. Without a find the files are offered.
  fish: `function __berth_find
  set -g __berth_found (berth __complete (commandline -opc)[2..] "$(commandline -ct)" 2>/dev/null)
  test (count $__berth_found) -gt 0
end
complete -c berth -f -n __berth_find -a '$__berth_found'
`,
};

/** The completion script of a shell. Throws a usage failure for another one. */
export function completionScript(shell: string | undefined): string {
  const script = shell === undefined ? undefined : SCRIPTS[shell];
  if (script !== undefined && SHELLS.includes(shell ?? '')) return script;
  throw usageFailure('berth completion needs bash, zsh or fish.', 'For bash: source <(berth completion bash)');
}

/** Commands and options that may come in the place of the last word. */
export function wordsFor(before: readonly string[], last: string): string[] {
  if (before[0] === 'help') return wordsFor(before.slice(1), last);
  const found = findCommand(before);
  const names = [...COMMANDS.map(({ name }) => name), 'completion', 'man', 'help', 'version'];
  if (found === undefined) {
    if (before.length === 0 && last.startsWith('-'))
      return ['--help', '--profile', '--version', '-h', '-v'].filter((word) => word.startsWith(last));
    const prefix = before.map((word) => `${word} `).join('');
    const next = names
      .filter((name) => name.startsWith(prefix))
      .map((name) => name.slice(prefix.length).split(' ', 1)[0] ?? '');
    const shells = before[0] === 'completion' && before.length === 1 ? SHELLS : [];
    return [...new Set([...next, ...shells])].filter((word) => word.startsWith(last));
  }
  const { command, args } = found;
  if (args.includes('--')) return [];
  const option = optionBefore(command, args);
  if (option !== undefined) return (option.values ?? option.suggested ?? []).filter((word) => word.startsWith(last));
  if (last.startsWith('-'))
    return ['help', ...Object.keys(command.options)].map((name) => `--${name}`).filter((word) => word.startsWith(last));
  const below = names
    .filter((name) => name.startsWith(`${command.name} `))
    .map((name) => name.slice(command.name.length + 1));
  return args.length === 0 ? below.filter((word) => word.startsWith(last)) : [];
}

/** The option whose value comes in the place of the next word. */
function optionBefore({ options }: Command, args: readonly string[]): Option | undefined {
  const word = args.at(-1) ?? '';
  const [, option] =
    Object.entries(options).find(
      ([name, { short }]) => word === `--${name}` || (short !== undefined && word === `-${short}`),
    ) ?? [];
  return option?.type === 'string' ? option : undefined;
}

/** What the next word may name, and what follows such a name; undefined where it names nothing of the server. */
function namesFor(before: readonly string[]): { names: Names; end: string } | undefined {
  if (before.at(-1) === '--profile' && before.length === 1) return { names: 'profile', end: '' };
  const { command, args = [] } = findCommand(before) ?? {};
  if (command === undefined || args.includes('--')) return undefined;
  const option = optionBefore(command, args);
  if (option !== undefined) return option.names === undefined ? undefined : { names: option.names, end: '' };
  if (command.name === 'cp') return { names: 'instance', end: ':' };
  const given = operandsIn(command, args);
  if (given === 1 && command.operands[1] === '[PORT]') return { names: 'port', end: '' };
  const isInstance = /^\[?INSTANCE(\.{3})?\]?$/.test(command.operands[0] ?? '');
  const names = command.names ?? (isInstance ? 'instance' : undefined);
  return names === undefined || (given > 0 && command.repeats !== true) ? undefined : { names, end: '' };
}

/** How many operands are there: words that are neither options nor their values. */
function operandsIn(command: Command, args: readonly string[]): number {
  return args.filter((word, at) => !word.startsWith('-') && optionBefore(command, args.slice(0, at)) === undefined)
    .length;
}

/** Words as if each value of an option stood apart: bash makes three words of --by=day, other shells one. */
function apart(words: readonly string[]): { words: readonly string[]; front: string } {
  const all = words.filter((word, at) => word !== '=' || !words[at - 1]?.startsWith('--'));
  if (all.length < words.length) return { words: words.at(-1) === '=' ? [...all, ''] : all, front: '' };
  const [, option = '', value = ''] = /^(--[a-z-]+)=(.*)$/.exec(words.at(-1) ?? '') ?? [];
  return option === '' ? { words, front: '' } : { words: [...words.slice(0, -1), option, value], front: `${option}=` };
}

/** `berth __complete WORD...`: the words that may stand in the place of the last one, one on a line. Never fails. */
export async function complete(given: readonly string[], session: Session): Promise<string> {
  const { words, front } = apart(given);
  const [before, last] = [words.slice(0, -1), words.at(-1) ?? ''];
  const named = last.startsWith('-') ? undefined : namesFor(before);
  const found =
    named === undefined ? [] : (await namesOf(named.names, before, session)).map((name) => `${name}${named.end}`);
  const all = [...wordsFor(before, last), ...found.filter((word) => word.startsWith(last))];
  return [...new Set(all)].map((word) => `${front}${word}\n`).join('');
}

/** Milliseconds that a person waits at a Tab. */
const PATIENCE_MS = 2000;

interface Listed {
  id?: string | number;
  name?: string | null;
  gpu_name?: string;
}

/** Where the names are listed, and the fields that a command takes. */
const LISTS: Readonly<
  Record<Exclude<Names, 'profile' | 'port' | 'address'>, readonly [path: string, ...fields: (keyof Listed)[]]>
> = {
  instance: ['/instances', 'id', 'name'],
  offer: ['/offers', 'id'],
  gpu: ['/offers', 'gpu_name'],
  key: ['/ssh-keys', 'id'],
  'ssh-key': ['/ssh-keys', 'id', 'name'],
  template: ['/templates', 'id', 'name'],
  registry: ['/registries', 'name'],
  webhook: ['/webhooks', 'id'],
  model: ['/models', 'id'],
};

/** The servers that somebody has signed in to. */
async function addressesOf({ env }: Session): Promise<string[]> {
  const stored = (await profilesOf(env)).map((name) =>
    storedAccess({ ...env, BERTH_PROFILE: name }).catch(() => undefined),
  );
  const urls = (await Promise.all(stored)).flatMap((access) => (access === undefined ? [] : [access.url]));
  // Shells put the words into a command line as they are.
  return urls.map((url) => url.replace(/\/api\/v1$/, '')).filter((url) => /^[\w:/.[\]-]+$/.test(url));
}

async function namesOf(names: Names, before: readonly string[], session: Session): Promise<string[]> {
  try {
    if (names === 'profile') return await profilesOf(session.env);
    if (names === 'address') return await addressesOf(session);
    const signal = AbortSignal.timeout(PATIENCE_MS);
    if (names === 'port') {
      const path = instancePath(before.at(-1) ?? '');
      const { ports } = await (await session.api()).call<InstanceRecord>('GET', path, { signal });
      return ports.map(({ container_port: port }) => String(port));
    }
    const [path, ...fields] = LISTS[names];
    const { data } = await (await session.api()).call<List<Listed>>('GET', path, { signal });
    const words = data.flatMap((one) => fields.map((field) => String(one[field] ?? '')));
    // Shells put the words into a command line as they are.
    return [...new Set(words)].filter((word) => /^[A-Za-z0-9][A-Za-z0-9._/-]*$/.test(word));
  } catch {
    return [];
  }
}
