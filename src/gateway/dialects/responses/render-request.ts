import type { Json } from '../../../lib/json.ts';
import { unsupported } from '../errors/dialect-error.ts';
import type { RenderOptions } from '../chat/render-request.ts';
import { offersTools } from '../shared/refusals.ts';
import type { IrRequest, OutputFormat } from '../types.ts';
import { renderItems } from './render-items.ts';

/** The internal form as a responses body. The engine stores nothing, because the gateway owns the state. */
export function renderResponsesRequest(request: IrRequest, options: RenderOptions): Json {
  if (request.stop.length > 0)
    throw unsupported('stop', 'This engine has no stop sequences in its responses dialect. Remove them.');
  const body: Json = { model: options.model, input: renderItems(request.items), store: false, ...request.sampling };
  delete body.top_k;
  if (options.maxTokens !== undefined) body.max_output_tokens = options.maxTokens;
  if (request.stream) body.stream = true;
  if (request.format !== undefined) body.text = { format: renderFormat(request.format) };
  if (request.reasoning?.enabled === false) body.reasoning = { effort: 'none' };
  else if (request.reasoning?.effort !== undefined) body.reasoning = { effort: request.reasoning.effort };
  if (!offersTools(request, options.quirks)) return body;
  const choice = request.toolChoice;
  body.tools = request.tools.map(({ name, description, parameters, strict }) => ({
    type: 'function',
    name,
    ...(description !== undefined && { description }),
    parameters,
    strict,
  }));
  if (choice !== undefined) {
    body.tool_choice = choice.mode === 'tool' ? { type: 'function', name: choice.name } : choice.mode;
  }
  if (request.parallel !== undefined) body.parallel_tool_calls = request.parallel;
  return body;
}

function renderFormat(format: OutputFormat): Json {
  if (format.type === 'json_object') return { type: 'json_object' };
  const rendered: Json = {
    type: 'json_schema',
    name: format.name ?? 'output',
    schema: format.schema,
    strict: format.strict ?? true,
  };
  if (format.description !== undefined) rendered.description = format.description;
  return rendered;
}
