import type { Json } from '../../../lib/json.ts';
import { signaturesOf, signerOf, withSignature } from '../call-signature.ts';
import type { Quirks } from '../quirks.ts';
import { checkImage, offersTools } from '../refusals.ts';
import { foldSystem, resultText, toTurns, type Turn } from '../conversation.ts';
import type { IrRequest, OutputFormat, OutputItem, Part, Tool } from '../types.ts';
import { argumentText } from '../tool-arguments.ts';

export interface RenderOptions {
  model: string;
  quirks: Quirks;
  maxTokens: number | undefined;
  /** The client needs the size of the prompt before the first token, or the bill must not wait for the last one. */
  earlyUsage: boolean;
}

/** The internal form as a chat/completions body. Throws DialectError. */
export function renderChatRequest(request: IrRequest, options: RenderOptions): Json {
  const { quirks } = options;
  const { system, turns } = foldSystem(toTurns(request.items));
  const head: Json[] = system === undefined ? [] : [{ role: 'system', content: system }];
  const messages = [...head, ...renderTurns(turns, { quirks, signer: signerOf(options.model) })];
  const body: Json = { model: options.model, messages, ...request.sampling, ...request.chatOnly };
  if (options.maxTokens !== undefined) body[quirks.limitName] = options.maxTokens;
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
  const schema: Json = { name: format.name ?? 'output', schema: format.schema };
  if (format.strict !== undefined) schema.strict = format.strict;
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

/** Who gets the turns. */
interface Server {
  quirks: Quirks;
  /** Whose signatures it takes. */
  signer: string;
}

/** Turns, without system turns, as chat messages. */
function renderTurns(turns: readonly Turn[], server: Server): Json[] {
  const { quirks } = server;
  const messages: Json[] = [];
  let images: Part[] = [];
  for (const turn of turns) {
    if (turn.role === 'tool') {
      messages.push({ role: 'tool', tool_call_id: turn.callId, content: resultText(turn) });
      for (const part of turn.parts) if (part.type === 'image') images.push(part);
      continue;
    }
    const introduced = introduce(images);
    images = [];
    if (turn.role === 'assistant') {
      pushUser(messages, introduced, quirks);
      messages.push(renderAssistant(turn.items, server));
    } else pushUser(messages, [...introduced, ...turn.parts], quirks);
  }
  pushUser(messages, introduce(images), quirks);
  return messages;
}

/** Chat has no images in tool messages. As in vLLM, a user message after all results has them. */
function introduce(images: readonly Part[]): Part[] {
  return images.length > 0 ? [{ type: 'text', text: 'Images returned by the tools:' }, ...images] : [];
}

function pushUser(messages: Json[], parts: readonly Part[], quirks: Quirks): void {
  if (parts.length === 0) return;
  const last = messages.at(-1);
  const content = renderParts(parts, quirks);
  // Templates that insist on alternation refuse this user turn. Its text joins the turn before.
  const joins = last !== undefined && (last.role === 'tool' || last.role === 'user');
  if (quirks.strictAlternation && joins && typeof content === 'string' && typeof last.content === 'string') {
    last.content = last.content === '' ? content : `${last.content}\n\n${content}`;
    return;
  }
  messages.push({ role: 'user', content });
}

function renderParts(parts: readonly Part[], quirks: Quirks): string | Json[] {
  const [only] = parts;
  if (parts.length === 1 && only?.type === 'text') return only.text;
  if (quirks.strictAlternation && parts.every((part) => part.type === 'text')) {
    return parts.map((part) => part.text).join('\n\n');
  }
  return parts.map((part) => (part.type === 'text' ? { type: 'text', text: part.text } : renderImage(part, quirks)));
}

function renderImage(part: { url: string; detail?: string }, quirks: Quirks): Json {
  checkImage(part.url, quirks);
  return {
    type: 'image_url',
    image_url: part.detail === undefined ? { url: part.url } : { url: part.url, detail: part.detail },
  };
}

function renderAssistant(items: readonly OutputItem[], { quirks, signer }: Server): Json {
  const message: Json = { role: 'assistant' };
  const calls = items.filter((item) => item.kind === 'call');
  const text = assistantText(items);
  // Templates such as Mistral's refuse an empty text beside calls (vllm #38738), so it is null there.
  message.content = text === '' && calls.length > 0 ? null : text;
  const reasoning = items.flatMap((item) => (item.kind === 'reasoning' && item.text !== '' ? [item.text] : []));
  if (reasoning.length > 0) for (const field of quirks.reasoningFields) message[field] = reasoning.join('\n\n');
  const signatures = signaturesOf(quirks.checksThoughts ? items : calls, signer);
  if (calls.length > 0) message.tool_calls = calls.map((call) => withSignature(renderCall(call), signatures.get(call)));
  return message;
}

/** The text of one turn. Adjacent pieces are joined as they are, pieces with a call between them by a blank line. */
function assistantText(items: readonly OutputItem[]): string {
  let text = '';
  let apart = false;
  for (const item of items) {
    if (item.kind === 'text' || item.kind === 'refusal') {
      text += text !== '' && apart ? `\n\n${item.text}` : item.text;
      apart = false;
    } else apart = true;
  }
  return text;
}

/** One call in a chat message. */
export function renderCall(call: { callId: string; name: string; arguments: string }): Json {
  return { id: call.callId, type: 'function', function: { name: call.name, arguments: argumentText(call.arguments) } };
}
