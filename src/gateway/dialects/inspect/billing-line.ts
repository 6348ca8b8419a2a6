import { isObject } from '../fields.ts';
import type { Json } from '../types.ts';

/**
 * Claude Code's first system block is a billing line with a value that changes on every request. Left in the
 * prompt it defeats every prefix cache (waybarrios/vllm-mlx#277 measures 13.7x), so it is removed from prompts
 * and never hashed. vLLM strips it itself since PR #36829; the others do not (llama.cpp #20623).
 */
const NONCE = /^x-anthropic-billing-header:[^\n]*\n*/i;

/** Text without a leading billing line. */
export function stripNonce(text: string): string {
  return text.charCodeAt(0) === 0x78 || text.charCodeAt(0) === 0x58 ? text.replace(NONCE, '') : text;
}

/** A messages body whose system prompt is free of the billing line; the same object when there is none. */
export function withoutNonce(body: Json): Json {
  const { system } = body;
  if (typeof system === 'string') {
    const stripped = stripNonce(system);
    return stripped === system ? body : { ...body, system: stripped };
  }
  if (!Array.isArray(system)) return body;
  const kept: unknown[] = [];
  let changed = false;
  for (const block of system as unknown[]) {
    if (!isObject(block) || typeof block.text !== 'string') {
      kept.push(block);
      continue;
    }
    const text = stripNonce(block.text);
    if (text !== block.text) changed = true;
    if (text === block.text) kept.push(block);
    else if (text !== '') kept.push({ ...block, text });
  }
  if (!changed) return body;
  const { system: _dropped, ...rest } = body;
  return kept.length === 0 ? rest : { ...rest, system: kept };
}
