import { isObject, type Json } from '../../../lib/json.ts';
import { unsupported } from '../errors/dialect-error.ts';
import { excerpt, optionalBoolean, optionalNumber, optionalString, pick } from '../fields.ts';
import type { HistoryItem, IrRequest } from '../types.ts';
import { parseInput, type References } from './parse-items.ts';
import { parseResponsesChoice, parseResponsesTools } from './tools.ts';

const RESPONSES_SAMPLING = ['temperature', 'top_p'] as const;

/** A responses body in the internal form, with the stored history before its input. Throws DialectError. */
export function parseResponsesRequest(
  body: Json,
  stored: { history?: readonly HistoryItem[]; references?: References },
): IrRequest {
  refuseServerState(body);
  refuseLogprobs(body);
  const { toolChoice, allowed } = parseResponsesChoice(body.tool_choice);
  const text = isObject(body.text) ? body.text : {};
  const reasoning = isObject(body.reasoning) ? body.reasoning : {};
  const effort = optionalString(reasoning.effort);
  const instructions = optionalString(body.instructions);
  return {
    stream: body.stream === true,
    items: [
      // Instructions belong to this request alone and not to the stored chain.
      ...(instructions ? [systemItem(instructions)] : []),
      ...(stored.history ?? []),
      ...parseInput(body.input, stored.references),
    ],
    tools: parseResponsesTools(body.tools).filter(({ name }) => allowed === undefined || allowed.has(name)),
    toolChoice,
    parallel: optionalBoolean(body.parallel_tool_calls),
    maxTokens: optionalNumber(body.max_output_tokens),
    stop: [],
    format: parseFormat(text.format),
    reasoning: effort === undefined ? undefined : parseEffort(effort),
    sampling: pick(body, RESPONSES_SAMPLING),
    chatOnly: pick(body, ['user', 'prompt_cache_key']),
  };
}

function systemItem(text: string): HistoryItem {
  return { kind: 'message', role: 'system', parts: [{ type: 'text', text }] };
}

function parseEffort(effort: string): IrRequest['reasoning'] {
  return effort === 'none' ? { enabled: false } : { effort };
}

/** Refuses what needs state that neither the gateway nor an engine has. Throws DialectError. */
export function refuseServerState(body: Json): void {
  if (body.conversation !== undefined && body.conversation !== null) {
    throw unsupported('conversation', "Conversations are not available. Continue with 'previous_response_id'.");
  }
  if (body.background === true) throw unsupported('background', 'Background responses are not available. Use stream.');
  if (isObject(body.prompt)) throw unsupported('prompt', 'Stored prompts are not available. Send the input itself.');
}

function refuseLogprobs(body: Json): void {
  const include = Array.isArray(body.include) ? body.include : [];
  if ((optionalNumber(body.top_logprobs) ?? 0) > 0 || include.includes('message.output_text.logprobs')) {
    throw unsupported('top_logprobs', 'Log probabilities are not available in this dialect. Use chat/completions.');
  }
}

function parseFormat(value: unknown): IrRequest['format'] {
  if (!isObject(value) || value.type === 'text') return undefined;
  if (value.type === 'json_object') return { type: 'json_object' };
  if (value.type !== 'json_schema') {
    throw unsupported(
      'text.format',
      `text.format '${excerpt(value.type)}' is not supported. Send text, json_object or json_schema.`,
    );
  }
  return {
    type: 'json_schema',
    name: optionalString(value.name),
    description: optionalString(value.description),
    schema: isObject(value.schema) ? value.schema : {},
    strict: optionalBoolean(value.strict),
  };
}
