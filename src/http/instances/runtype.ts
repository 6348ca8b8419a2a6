import type { Runtype } from '../../resources/instance-template.ts';

/**
 * The words Vast clients put into `runtype`, alone or joined by spaces: the REST enum, and the flags that vast-cli
 * really sends (`ssh_direc` is its own spelling).
 */
const WORDS: Readonly<Record<string, Runtype>> = {
  ssh: 'ssh',
  ssh_proxy: 'ssh',
  ssh_direct: 'ssh',
  ssh_direc: 'ssh',
  jupyter: 'jupyter',
  jupyter_proxy: 'jupyter',
  jupyter_direct: 'jupyter',
  jupyter_direc: 'jupyter',
  args: 'args',
};

/** What to write instead of a runtype that is not known. */
export const RUNTYPE_EXPECTED = `expected ssh, jupyter or args, or a Vast.ai spelling (${Object.keys(WORDS).join(', ')})`;

/** `ssh`, `jupyter` or `args`; undefined for words that are not known or that contradict each other. */
export function normalizeRuntype(text: string): Runtype | undefined {
  const words = text.trim().toLowerCase().split(/\s+/);
  const types = new Set<Runtype>();
  for (const word of words) {
    const type = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
    if (type === undefined) return undefined;
    types.add(type);
  }
  // A Jupyter instance has SSH too, so the two may stand together.
  if (types.has('args')) return types.size === 1 ? 'args' : undefined;
  return types.has('jupyter') ? 'jupyter' : 'ssh';
}
