import type { Runtype } from '../../resources/instance-template.ts';

/**
 * `args`, or the words that Vast.ai's clients send, alone or joined by spaces: the enum of its REST API, and the flags
 * that its command line really sends (`ssh_direc` is its own spelling). Empty means none.
 */
export const RUNTYPE_PATTERN =
  /^(?:args|(?:ssh|jupyter)(?:_proxy|_direct|_direc)?(?: +(?:ssh|jupyter)(?:_proxy|_direct|_direc)?)*)?$/;

/** What to write instead of a runtype that is not known. */
export const RUNTYPE_EXPECTED =
  'expected ssh, jupyter or args, or words of Vast.ai: ssh or jupyter, alone or with _proxy, _direct or _direc';

/** What a runtype that matches the pattern means; a Jupyter instance has SSH too. */
export function normalizeRuntype(text: string): Runtype | undefined {
  if (text === '' || text === 'args') return text === '' ? undefined : 'args';
  return text.includes('jupyter') ? 'jupyter' : 'ssh';
}
