import { unsupported, type DialectError } from './errors/dialect-error.ts';
import type { Quirks } from './quirks.ts';
import type { IrRequest } from './types.ts';

/** An engine that ignores tool_choice gets no tools for `none`. Throws DialectError for a forced call there. */
export function offersTools({ tools, toolChoice }: IrRequest, { honoursToolChoice }: Quirks): boolean {
  if (tools.length === 0) return false;
  if (honoursToolChoice || toolChoice === undefined) return true;
  if (toolChoice.mode === 'required' || toolChoice.mode === 'tool') throw ignoresToolChoice();
  return toolChoice.mode !== 'none';
}

/** ollama/ollama#17921. An answer without the forced call would look as if the engine had obeyed. */
export function ignoresToolChoice(): DialectError {
  return unsupported(
    'tool_choice',
    'This engine cannot be forced to call a tool. Use tool_choice auto or another model.',
  );
}

/** @throws DialectError for a remote image that the engine would have to fetch and does not */
export function checkImage(url: string, { remoteImages }: Quirks): void {
  if (remoteImages || url.startsWith('data:')) return;
  throw unsupported(
    'image_url',
    'This engine takes images only as data URLs, and the gateway does not fetch remote ones.',
  );
}
