import type { Instance, List } from './api/records.ts';
import { COMMANDS, findCommand } from './table/commands.ts';
import { usageFailure } from './failure.ts';
import type { Session } from './session.ts';

const SHELLS = ['bash', 'zsh', 'fish'];

/** Each asks the program itself, so that the script need not change with it. */
const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_berth() {
  local IFS=$'\\n'
  COMPREPLY=($(berth __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _berth berth
`,
  zsh: `#compdef berth
_berth() {
  local -a found
  found=("\${(@f)$(berth __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
if [[ "$funcstack[1]" = _berth ]]; then _berth; else compdef _berth berth; fi
`,
  fish: `complete -c berth -a '(berth __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
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

/** Whether an instance may come in the place of the next word. */
function takesInstance(before: readonly string[]): boolean {
  const { command, args } = findCommand(before) ?? {};
  const operands = args?.filter((word) => !word.startsWith('-')) ?? [];
  if (command?.name === 'cp') return true;
  return operands.length === 0 && /^\[?INSTANCE\]?$/.test(command?.operands[0] ?? '');
}

/** `berth __complete WORD...`: the words that may stand in the place of the last one, one on a line. Never fails. */
export async function complete(words: readonly string[], session: Session): Promise<string> {
  const [before, last] = [words.slice(0, -1), words.at(-1) ?? ''];
  const known = wordsFor(before, last);
  const instances = !last.startsWith('-') && takesInstance(before) ? await instancesOf(session) : [];
  return [...known, ...instances.filter((id) => id.startsWith(last))].map((word) => `${word}\n`).join('');
}

/** Milliseconds that a person waits at a Tab. */
const PATIENCE_MS = 2000;

async function instancesOf(session: Session): Promise<string[]> {
  try {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const { data } = await (await session.api()).call<List<Instance>>('GET', '/instances', { signal });
    // Shells put the words into a command line as they are.
    return data.map(({ id }) => id).filter((id) => /^[a-z0-9][a-z0-9.-]*$/.test(id));
  } catch {
    return [];
  }
}
