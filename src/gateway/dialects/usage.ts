import { isObject, type Json } from '../../lib/json.ts';
import { optionalCount } from './fields.ts';
import type { Dialect, Usage } from './types.ts';

/** The usage that an engine reports, or undefined when there is none, such as the `usage: null` of a stream chunk. */
export function parseUsage(dialect: Dialect, value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  // Servers use the names of another dialect, too: those that are there count.
  const has = (...names: string[]): boolean => names.some((name) => (value[name] ?? undefined) !== undefined);
  const isOpenAi = has('prompt_tokens', 'completion_tokens');
  // Who counts caches by Anthropic's names counts them beside the input, as Anthropic does.
  const isAnthropic =
    has('cache_read_input_tokens', 'cache_creation_input_tokens') && !isObject(value.input_tokens_details);
  if (!isOpenAi && (dialect === 'messages' || (isAnthropic && has('input_tokens')))) return parseMessagesUsage(value);
  const chat = isOpenAi || (dialect === 'chat' && !has('input_tokens', 'output_tokens'));
  const output = optionalCount(chat ? value.completion_tokens : value.output_tokens);
  // Servers of embeddings and ranks count input alone, some under the name of the total.
  const total = chat && output === undefined ? optionalCount(value.total_tokens) : undefined;
  const input = optionalCount(chat ? value.prompt_tokens : value.input_tokens) ?? total;
  if (input === undefined && output === undefined) return undefined;
  const inputDetails = chat ? value.prompt_tokens_details : value.input_tokens_details;
  const outputDetails = chat ? value.completion_tokens_details : value.output_tokens_details;
  const cachedTokens = Math.min(detail(inputDetails, 'cached_tokens') || firstCount(value, CACHED), input ?? 0);
  const written = firstCount(inputDetails, WRITTEN) || firstCount(value, WRITTEN);
  const usage = {
    inputTokens: input ?? 0,
    outputTokens: output ?? 0,
    cachedTokens,
    cacheWriteTokens: Math.min(written, (input ?? 0) - cachedTokens),
    reasoningTokens: detail(outputDetails, 'reasoning_tokens'),
  };
  return chat && output !== undefined ? withThoughts(value, usage) : usage;
}

/**
 * Usage whose output has what was thought. xAI and Google count that in the total alone, and take money for it as for the rest.
 * Where caches were used and no thoughts are named, the total may have other tokens more.
 */
function withThoughts({ total_tokens: total }: Json, usage: Usage): Usage {
  const { inputTokens, outputTokens, reasoningTokens, cachedTokens, cacheWriteTokens } = usage;
  const more = (optionalCount(total) ?? 0) - inputTokens - outputTokens;
  const isThought = more === reasoningTokens || cachedTokens + cacheWriteTokens === 0;
  if (more <= 0 || !isThought) return usage;
  return { ...usage, outputTokens: outputTokens + more, reasoningTokens: Math.max(reasoningTokens, more) };
}

/** Where a server has counts in its usage, and in objects inside of it. */
const OF_INPUT = ['prompt_tokens', 'input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'] as const;
const OF_OUTPUT = ['completion_tokens', 'output_tokens', 'total_tokens'] as const;
const DETAILS = [
  'prompt_tokens_details',
  'completion_tokens_details',
  'input_tokens_details',
  'output_tokens_details',
] as const;
const COUNTS_OF_DETAILS = [
  'cached_tokens',
  'cache_write_tokens',
  'cache_creation_tokens',
  'reasoning_tokens',
  'thinking_tokens',
] as const;

/**
 * The usage that several events of messages report together. Counts are cumulative: a missing one, or one that is no count,
 * leaves the last one valid. So do zeros alone: some servers say them of the input in their last event, which they told
 * in the first. Nothing else of what a server puts there is kept.
 */
export class EventUsage {
  readonly #counts: Json = {};
  readonly #details = Object.fromEntries(DETAILS.map((name): [string, Json] => [name, {}]));

  /** @returns undefined as long as there is none */
  add(reported: unknown): Usage | undefined {
    if (isObject(reported)) {
      addCounts(this.#counts, reported, [...OF_INPUT, ...CACHED]);
      addCounts(this.#counts, reported, OF_OUTPUT);
      for (const name of DETAILS) {
        const details = reported[name];
        if (isObject(details)) addCounts(this.#details[name] ?? {}, details, COUNTS_OF_DETAILS);
      }
    }
    return parseUsage('messages', { ...this.#counts, ...this.#details });
  }
}

function addCounts(counts: Json, reported: Json, names: readonly string[]): void {
  const found = names.flatMap((name): [string, number][] => {
    const count = optionalCount(reported[name]);
    return count === undefined ? [] : [[name, count]];
  });
  const saysMore = found.some(([, count]) => count > 0);
  for (const [name, count] of found) if (saysMore || counts[name] === undefined) counts[name] = count;
}

function isCount(value: unknown): boolean {
  return (optionalCount(value) ?? 0) > 0;
}

/** Whether usage has a count of output. A zero is none. */
export function countsOutput(reported: unknown): boolean {
  return isObject(reported) && [reported.output_tokens, reported.completion_tokens].some(isCount);
}

/** What is known of a stream that reports usage once more. Zeros take nothing away: some servers end with a report of them. */
export function laterUsage(before: Usage | undefined, now: Usage | undefined): Usage | undefined {
  if (before === undefined || now === undefined) return now ?? before;
  const input = now.inputTokens === 0 ? before : now;
  const { outputTokens, reasoningTokens } = now.outputTokens === 0 ? before : now;
  return { ...input, outputTokens, reasoningTokens };
}

/** What a client is told, as it is billed, where an engine did not count all of its output. */
export function atLeast(outputTokens: number, usage: Usage | undefined): Usage | undefined {
  return usage === undefined || usage.outputTokens >= outputTokens ? usage : { ...usage, outputTokens };
}

/** The usage of a whole answer of which an engine was given the first tokens, as the end of its prompt. */
export function countedWith(tokens: number, usage: Usage): Usage {
  if (tokens === 0) return usage;
  const inputTokens = Math.max(0, usage.inputTokens - tokens);
  return {
    ...usage,
    inputTokens,
    outputTokens: usage.outputTokens + tokens,
    cachedTokens: Math.min(usage.cachedTokens, inputTokens),
  };
}

/** Moonshot, DeepSeek, and those who pass on what Anthropic says. */
const CACHED = ['cached_tokens', 'prompt_cache_hit_tokens', 'cache_read_input_tokens'] as const;

/** OpenAI, LiteLLM and those who pass on what Anthropic says. */
const WRITTEN = ['cache_write_tokens', 'cache_creation_tokens', 'cache_creation_input_tokens'] as const;

function firstCount(value: unknown, names: readonly string[]): number {
  return names.map((name) => detail(value, name)).find((count) => count > 0) ?? 0;
}

function detail(details: unknown, name: string): number {
  return isObject(details) ? (optionalCount(details[name]) ?? 0) : 0;
}

/** Three disjoint input counts become one total. */
function parseMessagesUsage(value: Json): Usage | undefined {
  const fresh = optionalCount(value.input_tokens);
  const output = optionalCount(value.output_tokens);
  if (fresh === undefined && output === undefined) return undefined;
  const cachedTokens = optionalCount(value.cache_read_input_tokens) ?? 0;
  const cacheWriteTokens = optionalCount(value.cache_creation_input_tokens) ?? 0;
  return {
    inputTokens: (fresh ?? 0) + cachedTokens + cacheWriteTokens,
    outputTokens: output ?? 0,
    cachedTokens,
    cacheWriteTokens,
    reasoningTokens: detail(value.output_tokens_details, 'thinking_tokens'),
  };
}

export function renderChatUsage(usage: Usage): Json {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens, cache_write_tokens: usage.cacheWriteTokens },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  };
}

export function renderResponsesUsage(usage: Usage): Json {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens, cache_write_tokens: usage.cacheWriteTokens },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}

/** `input_tokens` excludes cached tokens here. Counted twice, they make agents compact at half their window. */
export function renderMessagesUsage(usage: Usage): Json {
  return {
    input_tokens: Math.max(0, usage.inputTokens - usage.cachedTokens - usage.cacheWriteTokens),
    cache_creation_input_tokens: usage.cacheWriteTokens,
    cache_read_input_tokens: usage.cachedTokens,
    output_tokens: usage.outputTokens,
    output_tokens_details: usage.reasoningTokens > 0 ? { thinking_tokens: usage.reasoningTokens } : null,
    server_tool_use: null,
  };
}
