import type { Json } from '../../../lib/json.ts';
import type { RenderOptions } from '../chat/render-request.ts';
import { offersTools } from '../shared/refusals.ts';
import { unsupported } from '../errors/dialect-error.ts';
import { pick } from '../fields.ts';
import { foldSystem, toTurns } from '../shared/conversation.ts';
import type { IrRequest, Tool } from '../types.ts';
import { MESSAGES_SAMPLING } from './parse-request.ts';
import { renderTurns } from './render-messages.ts';

/** This dialect requires a limit, the others do not. */
const DEFAULT_MAX_TOKENS = 4096;

/** The internal form as a messages body. Throws DialectError. */
export function renderMessagesRequest(request: IrRequest, options: RenderOptions): Json {
  const { system, turns } = foldSystem(toTurns(request.items));
  const maxTokens = options.maxTokens ?? DEFAULT_MAX_TOKENS;
  const body: Json = { model: options.model, max_tokens: maxTokens };
  if (system !== undefined) body.system = system;
  body.messages = renderTurns(turns, options.quirks);
  Object.assign(body, pick(request.sampling, MESSAGES_SAMPLING));
  if (request.stop.length > 0) body.stop_sequences = request.stop;
  if (request.stream) body.stream = true;
  addReasoning(body, request, maxTokens);
  addTools(body, request, options);
  return body;
}

function addReasoning(body: Json, request: IrRequest, maxTokens: number): void {
  const output: Json = {};
  if (request.format?.type === 'json_object') {
    throw unsupported('response_format', 'This engine has no JSON mode without a schema. Send a JSON schema.');
  }
  if (request.format !== undefined) output.format = { type: 'json_schema', schema: request.format.schema };
  if (request.reasoning?.effort !== undefined) output.effort = request.reasoning.effort;
  if (Object.keys(output).length > 0) body.output_config = output;
  if (request.reasoning?.enabled === true) {
    const budget = request.reasoning.budget ?? Math.max(1024, Math.floor(maxTokens / 2));
    body.thinking = { type: 'enabled', budget_tokens: budget };
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
    input_schema: tool.parameters,
    ...(tool.strict && { strict: true }),
  };
}
