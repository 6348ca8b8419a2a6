import type { Json } from '../../../lib/json.ts';
import type { RenderOptions } from '../chat/render-request.ts';
import { checkImage, offersTools } from '../refusals.ts';
import { unsupported } from '../errors/dialect-error.ts';
import { optionalNumber, pick } from '../fields.ts';
import { foldSystem, textOf, toTurns, type Turn } from '../conversation.ts';
import type { IrRequest, OutputItem, Part, Tool } from '../types.ts';
import type { Quirks } from '../quirks.ts';
import { inputOf } from '../tool-arguments.ts';
import { MESSAGES_SAMPLING } from './parse-request.ts';
import { callIdFor } from './vendor-history.ts';

/** This dialect requires a limit, the others do not. */
const DEFAULT_MAX_TOKENS = 4096;
/** Tokens of thinking. */
const LEAST_BUDGET = 1024;

/** The internal form as a messages body. Throws DialectError. */
export function renderMessagesRequest(request: IrRequest, options: RenderOptions): Json {
  const { system, turns } = foldSystem(toTurns(request.items));
  const maxTokens = options.maxTokens ?? DEFAULT_MAX_TOKENS;
  const body: Json = { model: options.model, max_tokens: maxTokens };
  refuseHot(request, options.quirks);
  if (system !== undefined) body.system = system;
  body.messages = renderTurns(turns, options.quirks);
  Object.assign(body, pick(request.sampling, MESSAGES_SAMPLING));
  if (request.stop.length > 0) body.stop_sequences = request.stop;
  if (request.stream) body.stream = true;
  addReasoning(body, request, maxTokens);
  addTools(body, request, options);
  return body;
}

/** Anthropic's own scale ends at 1, that of OpenAI at 2. Engines have none. */
function refuseHot({ sampling }: IrRequest, { engine }: Quirks): void {
  if (engine !== 'unknown' || (optionalNumber(sampling.temperature) ?? 0) <= 1) return;
  throw unsupported('temperature', 'This engine takes a temperature from 0 to 1. Send 1 at most.');
}

function addReasoning(body: Json, request: IrRequest, maxTokens: number): void {
  const output: Json = {};
  if (request.format?.type === 'json_object') {
    throw unsupported('response_format', 'This engine has no JSON mode without a schema. Send a JSON schema.');
  }
  if (request.format !== undefined) output.format = { type: 'json_schema', schema: request.format.schema };
  const effort = request.reasoning?.effort;
  if (effort !== undefined) output.effort = effort === 'minimal' ? 'low' : effort;
  if (Object.keys(output).length > 0) body.output_config = output;
  const half = Math.max(LEAST_BUDGET, Math.floor(maxTokens / 2));
  const asked = Math.max(LEAST_BUDGET, request.reasoning?.budget ?? half);
  const budget = asked < maxTokens ? asked : half;
  if (request.reasoning?.enabled === true) {
    // Anthropic refuses a budget that leaves nothing for the answer.
    if (budget < maxTokens) body.thinking = { type: 'enabled', budget_tokens: budget };
  } else if (request.reasoning?.enabled === false) body.thinking = { type: 'disabled' };
}

function addTools(body: Json, request: IrRequest, options: RenderOptions): void {
  if (!offersTools(request, options.quirks)) return;
  const choice = request.toolChoice;
  body.tools = request.tools.map(renderTool);
  const rendered = renderChoice(choice);
  // In this dialect the flag is inside tool_choice and means the opposite of parallel_tool_calls.
  if (request.parallel === false && choice?.mode !== 'none') {
    body.tool_choice = { ...(rendered ?? { type: 'auto' }), disable_parallel_tool_use: true };
  } else if (rendered !== undefined) body.tool_choice = rendered;
}

function renderChoice(choice: IrRequest['toolChoice']): Json | undefined {
  if (choice === undefined) return undefined;
  if (choice.mode === 'tool') return { type: 'tool', name: choice.name };
  return { type: choice.mode === 'required' ? 'any' : choice.mode };
}

function renderTool(tool: Tool): Json {
  return {
    name: tool.name,
    ...(tool.description !== undefined && { description: tool.description }),
    // Anthropic refuses a schema without a type, and OpenAI takes one for no parameters at all.
    input_schema: { type: 'object', ...tool.parameters },
    ...(tool.strict && { strict: true }),
  };
}

/** Turns, without system turns, as messages. Results and the user text after them share one user message. */
function renderTurns(turns: readonly Turn[], quirks: Quirks): Json[] {
  const messages: { role: string; content: Json[] }[] = [];
  for (const turn of turns) {
    const role = turn.role === 'assistant' ? 'assistant' : 'user';
    const content = renderTurn(turn, quirks);
    const last = messages.at(-1);
    if (last?.role === role) for (const block of content) last.content.push(block);
    else if (content.length > 0) messages.push({ role, content });
  }
  return messages.map((message) => ({ ...message }));
}

function renderTurn(turn: Turn, quirks: Quirks): Json[] {
  if (turn.role === 'assistant') return turn.items.flatMap((item) => renderOutput(item, quirks));
  const parts = turn.parts.flatMap((part) => renderPart(part, quirks));
  if (turn.role !== 'tool') return parts;
  const result: Json = { type: 'tool_result', tool_use_id: callIdFor(turn.callId, quirks) };
  result.content = turn.parts.every((part) => part.type === 'text') ? textOf(turn.parts) : parts;
  if (turn.isError) result.is_error = true;
  return [result];
}

function renderOutput(item: OutputItem, quirks: Quirks): Json[] {
  switch (item.kind) {
    case 'text':
    case 'refusal':
      return renderText(item.text);
    case 'call':
      return [
        { type: 'tool_use', id: callIdFor(item.callId, quirks), name: item.name, input: inputOf(item.arguments) },
      ];
    default:
      if (item.redacted !== undefined) return [{ type: 'redacted_thinking', data: item.redacted }];
      // This engine cannot read another vendor's encrypted reasoning.
      return item.signature === undefined && (item.text === '' || quirks.checksThoughts)
        ? []
        : [{ type: 'thinking', thinking: item.text, signature: item.signature ?? '' }];
  }
}

function renderPart(part: Part, quirks: Quirks): Json[] {
  if (part.type === 'text') return renderText(part.text);
  return [{ type: 'image', source: imageSource(part.url, quirks) }];
}

/** Anthropic refuses a text of white space, which models write before a call and clients of chat keep. */
function renderText(text: string): Json[] {
  return text.trim() === '' ? [] : [{ type: 'text', text }];
}

function imageSource(url: string, quirks: Quirks): Json {
  const data = /^data:([^;,]+)(?:;[^;,]+)*?;base64,/i.exec(url);
  if (data !== null) return { type: 'base64', media_type: data[1], data: url.slice(data[0].length) };
  if (/^data:/i.test(url)) throw unsupported('image_url', 'Data URLs of images must be base64.');
  checkImage(url, quirks);
  return { type: 'url', url };
}
