import { isObject, type Json } from '../../../lib/json.ts';
import { unsupported } from '../errors/dialect-error.ts';
import {
  excerpt,
  objectsOf,
  OF_ENGINES,
  optionalBoolean,
  optionalNumber,
  optionalObject,
  optionalString,
  parseStop,
  pick,
} from '../fields.ts';
import type { HistoryItem, IrRequest, Step, ToolChoice } from '../types.ts';
import { chosenAmong, parseResponsesChoice } from './choice.ts';
import { asksToCompact } from './compaction.ts';
import { parseInput, parseStored, type References } from './parse-items.ts';
import { isDispensable, offeredTools } from './tools.ts';

const RESPONSES_SAMPLING = ['temperature', 'top_p', 'top_k'] as const;

/** A responses body in the internal form, with the stored history before its input. Throws DialectError. */
export function parseResponsesRequest(
  body: Json,
  stored: { history?: readonly HistoryItem[]; references?: References },
): IrRequest {
  refuseServerState(body);
  refuseLogprobs(body);
  const { toolChoice, among } = parseResponsesChoice(body.tool_choice);
  const text = optionalObject(body.text, 'text');
  const effort = optionalString(optionalObject(body.reasoning, 'reasoning')?.effort);
  const instructions = optionalString(body.instructions);
  const items = [...(stored.history ?? []), ...parseInput(body.input, stored.references)].flatMap(parseStored);
  const offered = offeredTools(body, items);
  const tools = among?.(offered) ?? offered;
  if (tools.length === 0) refuseForced(toolChoice, body.tools);
  const common = {
    stream: body.stream === true,
    items: [
      // Instructions belong to this request alone and not to the stored chain.
      ...(instructions ? [systemItem(instructions)] : []),
      ...items.filter((item) => item.kind !== 'tools'),
    ],
    tools,
    maxTokens: optionalNumber(body.max_output_tokens),
    stop: parseStop(body.stop),
    reasoning: effort === undefined ? undefined : parseEffort(effort),
    sampling: pick(body, RESPONSES_SAMPLING),
    chatOnly: pick(body, ['user', 'prompt_cache_key', ...OF_ENGINES]),
  };
  // The tools stay in the prompt, whose start the server has in its cache.
  if (asksToCompact(body.input))
    return { ...common, ...(tools.length > 0 && { toolChoice: { mode: 'none' as const } }) };
  return {
    ...common,
    toolChoice: chosenAmong(toolChoice, tools),
    parallel: optionalBoolean(body.parallel_tool_calls),
    format: parseFormat(optionalObject(text?.format, 'text.format')),
  };
}

/** Throws DialectError for a choice that only a tool could meet that runs at OpenAI and was left out. */
function refuseForced(choice: ToolChoice | undefined, tools: unknown): void {
  const first = objectsOf(tools).find(isDispensable);
  if (first === undefined || choice === undefined || choice.mode === 'auto' || choice.mode === 'none') return;
  throw unsupported(
    'tool_choice',
    `tool_choice forces a call, and the tool '${excerpt(first.type)}' runs at OpenAI and is not available here. Declare a function.`,
  );
}

function systemItem(text: string): Step {
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

function parseFormat(value: Json | undefined): IrRequest['format'] {
  if (value === undefined || value.type === 'text') return undefined;
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
