import { isObject, type Json } from '../../../lib/json.ts';

/**
 * Claude Code's first system block is a billing line, which differs in every request. In the prompt it defeats every
 * prefix cache (waybarrios/vllm-mlx#277 measures 13.7x), so it is removed from prompts and never hashed. vLLM removes
 * it since PR #36829, other engines do not (llama.cpp #20623).
 */
const BILLING_LINE = /^x-anthropic-billing-header:[^\n]*\n*/i;

/** Text without a leading billing line. */
export function withoutBillingLine(text: string): string {
  return text.charCodeAt(0) === 0x78 || text.charCodeAt(0) === 0x58 ? text.replace(BILLING_LINE, '') : text;
}

/** A messages body without the billing line in its system prompt: the same object when there is none. */
export function withoutBillingBlock(body: Json): Json {
  const { system } = body;
  if (typeof system === 'string') {
    const stripped = withoutBillingLine(system);
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
    const text = withoutBillingLine(block.text);
    changed ||= text !== block.text;
    if (text === block.text) kept.push(block);
    else if (text !== '') kept.push({ ...block, text });
  }
  if (!changed) return body;
  const { system: _dropped, ...rest } = body;
  return kept.length === 0 ? rest : { ...rest, system: kept };
}
