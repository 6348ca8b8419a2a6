import type { InstanceRecord, List } from '../wire/records.ts';
import { COMMANDS, findCommand } from './table/commands.ts';
import { usageFailure } from './failure.ts';
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
  const names = [...COMMANDS.map(({ name }) => name), 'completion', 'help'];
  if (found === undefined) {
    const prefix = before.map((word) => `${word} `).join('');
    const next = names
      .filter((name) => name.startsWith(prefix))
      .map((name) => name.slice(prefix.length).split(' ', 1)[0] ?? '');
    const shells = before[0] === 'completion' && before.length === 1 ? SHELLS : [];
    return [...new Set([...next, ...shells])].filter((word) => word.startsWith(last));
  }
  const { command, args } = found;
  if (args.includes('--')) return [];
  if (last.startsWith('-'))
    return ['help', ...Object.keys(command.options)].map((name) => `--${name}`).filter((word) => word.startsWith(last));
  const below = names
    .filter((name) => name.startsWith(`${command.name} `))
    .map((name) => name.slice(command.name.length + 1));
  return args.length === 0 ? below.filter((word) => word.startsWith(last)) : [];
}

/** What follows the id of an instance in the place of the next word; undefined where none may come. */
function afterInstance(before: readonly string[]): string | undefined {
  const { command, args } = findCommand(before) ?? {};
  if (command?.name === 'cp') return ':';
  const operands = args?.filter((word) => !word.startsWith('-')) ?? [];
  return operands.length === 0 && /^\[?INSTANCE\]?$/.test(command?.operands[0] ?? '') ? '' : undefined;
}

/** `berth __complete WORD...`: the words that may stand in the place of the last one, one on a line. Never fails. */
export async function complete(words: readonly string[], session: Session): Promise<string> {
  const [before, last] = [words.slice(0, -1), words.at(-1) ?? ''];
  const known = wordsFor(before, last);
  const end = last.startsWith('-') ? undefined : afterInstance(before);
  const instances = end === undefined ? [] : (await instancesOf(session)).map((id) => `${id}${end}`);
  return [...known, ...instances.filter((word) => word.startsWith(last))].map((word) => `${word}\n`).join('');
}

/** Milliseconds that a person waits at a Tab. */
const PATIENCE_MS = 2000;

async function instancesOf(session: Session): Promise<string[]> {
  try {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const { data } = await (await session.api()).call<List<InstanceRecord>>('GET', '/instances', { signal });
    // Shells put the words into a command line as they are.
    return data.map(({ id }) => id).filter((id) => /^[a-z0-9][a-z0-9.-]*$/.test(id));
  } catch {
    return [];
  }
}
