import { isObject, type Json } from '../../../lib/json.ts';
import { objectsOf } from '../fields.ts';
import { asksToCompact } from '../responses/compaction.ts';
import type { Dialect } from '../types.ts';

/** A request without any special feature. */
export const PLAIN = {
  tools: false,
  /**
   * What the gateway emulates: tools of responses such as `custom`, `namespace` and `shell`, what Codex adds to a
   * conversation, and `bash` and the like of messages.
   */
  clientTools: false,
  /** Tools that the vendor runs. */
  hostedTools: false,
  /** The input replays calls, results or reasoning of earlier turns. */
  toolHistory: false,
  thinking: false,
  redactedThinking: false,
  disableParallel: false,
  toolErrors: false,
  documents: false,
  /** The input replays calls that the vendor ran, a client's shell or a search for tools: engines do not know these. */
  vendorHistory: false,
  /** The start of the conversation may be left out (`truncation: auto`). */
  truncates: false,
  /** The input has text files (`input_file`). */
  files: false,
  stopSequences: false,
  structured: false,
  midSystem: false,
  /** The conversation is to be summed up (responses). */
  compacts: false,
};

/** What a request asks for beyond plain text. The quirk table decides by these. */
export type RequestFeatures = typeof PLAIN;

/** Reads the features of a body. Never throws. */
export function requestFeatures(dialect: Dialect, body: unknown): RequestFeatures {
  if (!isObject(body)) return PLAIN;
  const features = { ...PLAIN, tools: objectsOf(body.tools).length > 0 };
  if (dialect === 'messages') markMessages(body, features);
  if (dialect === 'responses') markResponses(body, features);
  return features;
}

function markMessages(body: Json, features: RequestFeatures): void {
  features.thinking = isObject(body.thinking);
  features.clientTools = objectsOf(body.tools).some(({ type }) => typeof type === 'string' && type !== 'custom');
  features.stopSequences = Array.isArray(body.stop_sequences) && body.stop_sequences.length > 0;
  features.disableParallel = isObject(body.tool_choice) && body.tool_choice.disable_parallel_tool_use === true;
  const output = isObject(body.output_config) ? body.output_config : {};
  features.structured = isObject(output.format) || isObject(body.output_format);
  for (const message of objectsOf(body.messages)) {
    if (message.role === 'system') features.midSystem = true;
    for (const block of objectsOf(message.content)) markBlock(block, features);
  }
}

function markBlock(block: Json, features: RequestFeatures): void {
  switch (block.type) {
    case 'tool_use':
      features.toolHistory = true;
      break;
    case 'tool_result':
      features.toolHistory = true;
      if (block.is_error === true) features.toolErrors = true;
      for (const inner of objectsOf(block.content)) markBlock(inner, features);
      break;
    case 'document':
    case 'search_result':
      features.documents = true;
      break;
    case 'redacted_thinking':
      features.redactedThinking = true;
      break;
    default:
      features.vendorHistory ||= isVendorBlock(block.type) || OTHER_BLOCKS.has(block.type);
  }
}

/** Blocks that engines do not know, beside calls. */
const OTHER_BLOCKS = new Set<unknown>(['tool_reference', 'compaction', 'fallback', 'mcp_tool_listing']);

/** Whether a block of an answer is a call that the vendor ran, or its result. */
export function isVendorBlock(type: unknown): boolean {
  if (typeof type !== 'string' || type === 'tool_result') return false;
  return type === 'server_tool_use' || type === 'mcp_tool_use' || type.endsWith('_tool_result');
}

const ENGINE_ITEMS = new Set<unknown>([
  'message',
  'function_call',
  'function_call_output',
  'reasoning',
  'item_reference',
  'custom_tool_call',
  'custom_tool_call_output',
]);

/** Kinds of tools beside functions that the client runs, or may. */
const CLIENT_TOOLS = new Set<unknown>(['custom', 'namespace', 'tool_search', 'shell', 'local_shell', 'apply_patch']);
/** Items of agents, which change what can be called or who speaks. */
const AGENT_ITEMS = new Set<unknown>(['additional_tools', 'agent_message', 'tool_search_call', 'tool_search_output']);

function markResponses(body: Json, features: RequestFeatures): void {
  const input = objectsOf(body.input);
  features.clientTools =
    objectsOf(body.tools).some(({ type }) => CLIENT_TOOLS.has(type)) || input.some(({ type }) => AGENT_ITEMS.has(type));
  features.tools ||= input.some(({ tools }) => objectsOf(tools).length > 0);
  features.hostedTools = objectsOf(body.tools).some(({ type }) => type !== 'function' && !CLIENT_TOOLS.has(type));
  features.compacts = asksToCompact(body.input);
  features.structured = isObject(body.text) && isObject(body.text.format) && body.text.format.type !== 'text';
  features.thinking = isObject(body.reasoning);
  features.toolHistory = input.some(
    (item) => typeof item.type === 'string' && item.type !== 'message' && item.type !== 'item_reference',
  );
  features.vendorHistory = input.some(({ type }) => type !== undefined && !ENGINE_ITEMS.has(type));
  features.truncates = body.truncation === 'auto';
  features.files = input.some(({ content }) => objectsOf(content).some(({ type }) => type === 'input_file'));
}
