import type { Json } from '../../../lib/json.ts';
import { unsupported } from '../errors/dialect-error.ts';
import type { RenderOptions } from '../chat/render-request.ts';
import { offersTools } from '../refusals.ts';
import type { HistoryItem, IrRequest, OutputFormat, OutputItem, Part, ReasoningItem } from '../types.ts';
import { itemId } from '../output-items.ts';
import { encodeReasoning } from '../encrypted-content.ts';
import { argumentText } from '../tool-arguments.ts';
import { resultText } from '../conversation.ts';
import type { Quirks } from '../quirks.ts';

/** The internal form as a responses body. The engine stores nothing, because the gateway owns the state. */
export function renderResponsesRequest(request: IrRequest, options: RenderOptions): Json {
  if (request.stop.length > 0)
    throw unsupported('stop', 'This engine has no stop sequences in its responses dialect. Remove them.');
  const input = renderInput(request.items, options.quirks);
  const body: Json = { model: options.model, input, store: false, ...request.sampling };
  delete body.top_k;
  if (options.maxTokens !== undefined) body.max_output_tokens = options.maxTokens;
  if (request.stream) body.stream = true;
  if (request.format !== undefined) body.text = { format: renderFormat(request.format) };
  if (request.reasoning?.enabled === false) body.reasoning = { effort: 'none' };
  else if (request.reasoning?.effort !== undefined) {
    body.reasoning = { effort: request.reasoning.effort };
    // OpenAI keeps nothing, and gives what its model thought sealed, for the next turn, to who asks for it.
    if (options.quirks.checksThoughts) body.include = ['reasoning.encrypted_content'];
  }
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
  };
  if (format.strict !== undefined) rendered.strict = format.strict;
  if (format.description !== undefined) rendered.description = format.description;
  return rendered;
}

/** Items as `input`. Types and engines require ids and a status in replayed output (vllm-project/vllm#33089). */
export function renderItems(items: readonly HistoryItem[]): Json[] {
  return items.map(renderItem);
}

/** The same for a server, without signatures of chat. Where it checks thoughts, it takes none but what a vendor sealed. */
export function renderInput(items: readonly HistoryItem[], { checksThoughts }: Quirks): Json[] {
  const isTaken = (item: HistoryItem): boolean =>
    item.kind !== 'reasoning' || (item.callSignature === undefined && (!checksThoughts || item.opaque !== undefined));
  return renderItems(items.filter(isTaken));
}

function renderItem(item: HistoryItem, position: number): Json {
  switch (item.kind) {
    case 'message':
      return { type: 'message', role: item.role, content: item.parts.map(renderPart) };
    case 'text':
      return assistantMessage(idOf(item, position), { type: 'output_text', text: item.text, annotations: [] });
    case 'refusal':
      return assistantMessage(idOf(item, position), { type: 'refusal', refusal: item.text });
    case 'call':
      return { type: 'function_call', call_id: item.callId, name: item.name, arguments: argumentText(item.arguments) };
    case 'given':
      return item.item;
    case 'tools':
      return { type: 'additional_tools', role: 'developer', tools: item.tools };
    case 'result':
      return { type: 'function_call_output', call_id: item.callId, output: renderOutput(item) };
    default:
      return { type: 'reasoning', id: idOf(item, position), ...renderReasoning(item) };
  }
}

/** Who seals what was thought shows no more of it than a summary, and takes none of it in the clear (OpenAI). */
function renderReasoning(item: ReasoningItem): Json {
  const { text, opaque, signature, redacted, callSignature } = item;
  if (opaque !== undefined)
    return { summary: text === '' ? [] : [{ type: 'summary_text', text }], encrypted_content: opaque };
  return {
    summary: [],
    ...(text !== '' && { content: [{ type: 'reasoning_text', text }] }),
    ...((signature ?? redacted ?? callSignature) !== undefined && { encrypted_content: encodeReasoning(item) }),
  };
}

function idOf(item: OutputItem, position: number): string {
  return item.id ?? itemId(item.kind, 'h', position);
}

function assistantMessage(id: string, part: Json): Json {
  return { type: 'message', id, role: 'assistant', status: 'completed', content: [part] };
}

function renderOutput(item: { parts: Part[]; isError?: boolean }): unknown {
  const text = resultText({ parts: item.parts, isError: item.isError ?? false });
  const images = item.parts.filter((part) => part.type === 'image');
  return images.length === 0
    ? text
    : [...(text === '' ? [] : [{ type: 'input_text', text }]), ...images.map(renderPart)];
}

function renderPart(part: Part): Json {
  if (part.type === 'text') return { type: 'input_text', text: part.text };
  return { type: 'input_image', image_url: part.url, detail: part.detail ?? 'auto' };
}
