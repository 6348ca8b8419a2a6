import { isObject, type Json } from '../../../lib/json.ts';
import { objectsOf } from '../fields.ts';
import type { Dialect } from '../types.ts';

/** What a request asks for beyond plain text. The quirk table decides by these. */
export interface RequestFeatures {
  stream: boolean;
  tools: boolean;
  /** Kinds of tools that only the responses dialect has (`custom`, `namespace`), which the gateway emulates. */
  clientTools: boolean;
  /** The input replays calls, results or reasoning of earlier turns. */
  toolHistory: boolean;
  thinking: boolean;
  redactedThinking: boolean;
  disableParallel: boolean;
  toolErrors: boolean;
  documents: boolean;
  stopSequences: boolean;
  structured: boolean;
  midSystem: boolean;
}

/** A request without any special feature. */
export const PLAIN: RequestFeatures = {
  stream: false,
  tools: false,
  clientTools: false,
  toolHistory: false,
  thinking: false,
  redactedThinking: false,
  disableParallel: false,
  toolErrors: false,
  documents: false,
  stopSequences: false,
  structured: false,
  midSystem: false,
};

/** Reads the features of a body. Never throws. */
export function requestFeatures(dialect: Dialect, body: unknown): RequestFeatures {
  if (!isObject(body)) return PLAIN;
  const features = { ...PLAIN, stream: body.stream === true, tools: objectsOf(body.tools).length > 0 };
  if (dialect === 'messages') markMessages(body, features);
  if (dialect === 'responses') markResponses(body, features);
  return features;
}

function markMessages(body: Json, features: RequestFeatures): void {
  const thinking = body.thinking;
  features.thinking = isObject(thinking);
  features.stopSequences = Array.isArray(body.stop_sequences) && body.stop_sequences.length > 0;
  features.disableParallel = isObject(body.tool_choice) && body.tool_choice.disable_parallel_tool_use === true;
  features.structured = isObject(body.output_config) && isObject(body.output_config.format);
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
  }
}

function markResponses(body: Json, features: RequestFeatures): void {
  features.clientTools = objectsOf(body.tools).some((tool) => tool.type === 'custom' || tool.type === 'namespace');
  features.structured = isObject(body.text) && isObject(body.text.format) && body.text.format.type !== 'text';
  features.thinking = isObject(body.reasoning);
  features.toolHistory = objectsOf(body.input).some(
    (item) => typeof item.type === 'string' && item.type !== 'message' && item.type !== 'item_reference',
  );
}
