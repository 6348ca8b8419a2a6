import type { Json } from '../../../lib/json.ts';
import { optionalCount } from '../fields.ts';
import type { ClientError, Overflow } from '../types.ts';

/** OpenAI's code, by which agents know that they must compact. */
export const CONTEXT_LENGTH_EXCEEDED = 'context_length_exceeded';

export function isOverflow({ code }: ClientError): boolean {
  return code === CONTEXT_LENGTH_EXCEEDED;
}

/** The words of engines. A group that is not named in them is not known. */
const WORDS: readonly RegExp[] = [
  // vLLM: up to 0.9, 0.10, from 0.16 on, 0.15, and its engine. It stops counting one token beyond what fits.
  /maximum context length is (?<limit>\d+) tokens.{0,80}?\((?<prompt>\d+) in the messages, (?<output>\d+) in the completion\)/,
  /is too large: (?<output>\d+)\. This model's maximum context length is (?<limit>\d+) tokens and your request has (?<prompt>\d+) input tokens/,
  /maximum context length is (?<limit>\d+) tokens.{0,40}?requested (?<output>\d+) output tokens and your prompt contains (?:at least )?(?<prompt>\d+) input tokens/,
  /You passed (?<prompt>\d+) input tokens and requested (?<output>\d+) output tokens.{0,40}?context length is only (?<limit>\d+) tokens/,
  /\(length (?<prompt>\d+)\) is longer than the maximum model length of (?<limit>\d+)/,
  /\(total length (?<prompt>\d+)\) is too long to fit into the model \(context length (?<limit>\d+)\)/,
  /max_tokens must be at least 1, got -\d/,
  // SGLang
  /maximum context length of (?<limit>\d+) tokens\. You requested a total of \d+ tokens: (?<prompt>\d+) tokens from the input messages and (?<output>\d+) tokens/,
  /input \((?<prompt>\d+) tokens\) is longer than the model's context length \((?<limit>\d+) tokens\)/,
  /Input length \((?<prompt>\d+)(?: tokens)?\) exceeds (?:the|model's) maximum (?:allowed|context) length \((?<limit>\d+)/,
  // OpenAI, and the other servers that say no more than the limit
  /maximum context length is (?<limit>\d+) tokens.{0,40}?(?:resulted in|requested|request has|prompt contains) (?:at least |about )?(?<prompt>\d+)(?: input)? tokens/,
  /maximum context length (?:is|of) (?<limit>\d+)/,
  /context length is only (?<limit>\d+)/,
  /exceeds the context window/,
  // llama.cpp. The first build with a type of its own for this has the counts beside the message.
  /request \((?<prompt>\d+) tokens\) exceeds the available context size \((?<limit>\d+) tokens\)/,
  /input \((?<prompt>\d+) tokens\) is larger than the max context size \((?<limit>\d+) tokens\)/,
  /exceeds the available context size/,
  /Context size has been exceeded/,
  // Text Generation Inference
  /must be <= (?<limit>\d+)\. Given: (?<prompt>\d+) `inputs` tokens and (?<output>\d+) `max_new_tokens`/,
  /`inputs` must have less than (?<limit>\d+) tokens\. Given: (?<prompt>\d+)/,
  // Ollama
  /exceeded max context length/,
  /input length exceeds (?:the|maximum) context length/,
  // Anthropic
  /prompt is too long: (?<prompt>\d+) tokens > (?<limit>\d+) maximum/,
  /exceed context limit: (?<prompt>\d+) \+ (?<output>\d+) > (?<limit>\d+)/,
  // TensorRT-LLM
  /Prompt length \((?<prompt>\d+)(?:\.0)?\) exceeds maximum (?:sequence|input) length \((?<limit>\d+)\)/i,
  /sum of prompt length \((?<prompt>\d+)(?:\.0)?\), query length \(\d+\) should not exceed max_num_tokens \((?<limit>\d+)\)/,
  // LM Studio
  /keep the first (?<prompt>\d+) tokens when (?:context the|the context|context) overflows.{0,80}context length of only (?<limit>\d+)/,
  /greater than the context length \(n_keep: (?<prompt>\d+) ?>= n_ctx: (?<limit>\d+)\)/,
  // oMLX and MLX-Serve
  /Prompt too long: (?<prompt>\d+) tokens exceeds max context window of (?<limit>\d+) tokens/i,
  /prompt exceeds (?:the )?maximum context length/i,
  // What other servers say, behind which some engines stand: OpenRouter, Google, xAI, GitHub Copilot, Kimi, Mistral, LiteLLM
  // for Azure, Cohere, Groq, LM Studio, MiniMax, Bedrock.
  /input token count \((?<prompt>\d+)\) exceeds the maximum number of tokens allowed \((?<limit>\d+)\)/i,
  /maximum prompt length is (?<limit>\d+) but the request contains (?<prompt>\d+) tokens/i,
  /prompt token count of (?<prompt>\d+) exceeds the limit of (?<limit>\d+)/i,
  /exceeded model token limit: (?<limit>\d+) \(requested: (?<prompt>\d+)\)/i,
  /Prompt contains (?<prompt>\d+) tokens.{0,40}? too large for model with (?<limit>\d+) maximum context length/i,
  /exceed the configured limit of (?<limit>\d+) tokens\. Your messages resulted in (?<prompt>\d+) tokens/i,
  /number of tokens in the prompt cannot exceed (?<limit>\d+)/i,
  /maximum context (?:length|limit) (?:is|of) (?<limit>\d+)/i,
  /longer than the model's context length of (?<limit>\d+)/i,
  /reduce the length of the messages/i,
  /greater than the context length/i,
  /context window exceeds limit/i,
  /exceed context limit/i,
  /input is too long for requested model/i,
  /\bcontext_length_exceeded\b/,
];

/** A comma between thousands. */
const THOUSANDS = /(?<=\d),(?=\d{3}\b)/g;

/** Longer messages are not searched, because some patterns take more than linear time. */
const MAX_SEARCHED = 2000;

/**
 * Reads from an engine's error whether the request does not fit into the context of the model.
 *
 * @param fields of the error object, which may have a code, a type and counts
 * @param message as the engine sent it
 */
export function readOverflow(fields: Json, message: string): Overflow | undefined {
  const text = message.slice(0, MAX_SEARCHED).replace(THOUSANDS, '');
  for (const words of WORDS) {
    const match = words.exec(text);
    if (match === null) continue;
    const { prompt, output, limit } = match.groups ?? {};
    return withCounts({ prompt: countOf(prompt), output: countOf(output), limit: countOf(limit) }, fields);
  }
  const isTyped = fields.code === CONTEXT_LENGTH_EXCEEDED || fields.type === 'exceed_context_size_error';
  return isTyped ? withCounts({}, fields) : undefined;
}

function withCounts({ prompt, output, limit }: Overflow, fields: Json): Overflow {
  return {
    prompt: prompt ?? optionalCount(fields.n_prompt_tokens),
    output,
    limit: limit ?? optionalCount(fields.n_ctx),
  };
}

function countOf(digits: string | undefined): number | undefined {
  return digits === undefined ? undefined : optionalCount(Number(digits));
}

/**
 * The message for a client of the messages dialect. Anthropic's clients compact when they read the first form, and ask
 * for a shorter answer when they read the second.
 */
export function overflowMessage({ message, overflow }: ClientError): string {
  const { prompt, output, limit } = overflow ?? {};
  if (prompt === undefined || limit === undefined)
    return message.startsWith('prompt is too long') ? message : `prompt is too long: ${message}`;
  if (prompt > limit) return tooLong(prompt, limit);
  if (output === undefined) return tooLong(prompt, Math.min(limit, prompt - 1));
  // One token too many is where vLLM stops counting, so the prompt may have any length. A shorter answer may not help.
  if (prompt + output === limit + 1) return tooLong(prompt, limit - output);
  return `input length and \`max_tokens\` exceed context limit: ${prompt} + ${output} > ${limit}, decrease input length or \`max_tokens\` and try again`;
}

function tooLong(prompt: number, limit: number): string {
  return `prompt is too long: ${prompt} tokens > ${limit} maximum`;
}
