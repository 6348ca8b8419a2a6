import type { Json } from '../../../lib/json.ts';
import type { Quirks } from '../quirks.ts';
import { offersTools } from '../shared/refusals.ts';
import { foldSystem, toTurns } from '../shared/conversation.ts';
import type { IrRequest, OutputFormat, Tool } from '../types.ts';
import { renderTurns } from './render-messages.ts';

export interface RenderOptions {
  model: string;
  quirks: Quirks;
  maxTokens: number | undefined;
  /** The client needs the size of the prompt before the first token. */
  earlyUsage: boolean;
}

/** The internal form as a chat/completions body. Throws DialectError. */
export function renderChatRequest(request: IrRequest, options: RenderOptions): Json {
  const { quirks } = options;
  const { system, turns } = foldSystem(toTurns(request.items));
  const messages: Json[] = system === undefined ? [] : [{ role: 'system', content: system }];
  messages.push(...renderTurns(turns, quirks));
  const body: Json = { model: options.model, messages, ...request.sampling, ...request.chatOnly };
  if (options.maxTokens !== undefined) body.max_tokens = options.maxTokens;
  if (request.stop.length > 0) body.stop = request.stop;
  if (request.stream) {
    body.stream = true;
    // The gateway counts tokens by usage, so it always asks for it.
    body.stream_options =
      options.earlyUsage && quirks.continuousUsage
        ? { include_usage: true, continuous_usage_stats: true }
        : { include_usage: true };
  }
  if (request.continuesAnswer && quirks.continuesAnswer) {
    // The answer continues the client's last message instead of following it.
    body.continue_final_message = true;
    body.add_generation_prompt = false;
  }
  if (request.format !== undefined) body.response_format = renderFormat(request.format);
  addTools(body, request, quirks);
  addThinking(body, request, quirks);
  return body;
}

function addTools(body: Json, request: IrRequest, quirks: Quirks): void {
  if (!offersTools(request, quirks)) return;
  const choice = request.toolChoice;
  body.tools = request.tools.map(renderTool);
  if (choice !== undefined) {
    body.tool_choice = choice.mode === 'tool' ? { type: 'function', function: { name: choice.name } } : choice.mode;
  }
  if (request.parallel !== undefined) body.parallel_tool_calls = request.parallel;
}

function renderTool(tool: Tool): Json {
  const fn: Json = { name: tool.name };
  if (tool.description !== undefined) fn.description = tool.description;
  return { type: 'function', function: { ...fn, parameters: tool.parameters, strict: tool.strict } };
}

function renderFormat(format: OutputFormat): Json {
  if (format.type === 'json_object') return { type: 'json_object' };
  const schema: Json = { name: format.name ?? 'output', schema: format.schema, strict: format.strict ?? true };
  if (format.description !== undefined) schema.description = format.description;
  return { type: 'json_schema', json_schema: schema };
}

const EFFORTS = new Map([
  ['minimal', 'low'],
  ['xhigh', 'high'],
  ['max', 'high'],
]);

function addThinking(body: Json, request: IrRequest, quirks: Quirks): void {
  const { reasoning } = request;
  if (reasoning === undefined || quirks.thinking === 'none') return;
  const effort = reasoning.effort === undefined ? undefined : (EFFORTS.get(reasoning.effort) ?? reasoning.effort);
  if (effort !== undefined && reasoning.enabled !== false) body.reasoning_effort = effort;
  if (reasoning.enabled === undefined) return;
  if (quirks.thinking === 'template') {
    // Qwen and GLM read enable_thinking, DeepSeek and Granite thinking. Templates ignore the other.
    const given = body.chat_template_kwargs as Json | undefined;
    body.chat_template_kwargs = { enable_thinking: reasoning.enabled, thinking: reasoning.enabled, ...given };
  } else if (!reasoning.enabled && quirks.engine === 'ollama') body.reasoning_effort = 'none';
}
