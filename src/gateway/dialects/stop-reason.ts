import type { ClientError, StopReason } from './types.ts';

/** Whether an engine says why it stopped. Some write an empty text, or the word null, until they know. */
export function isReason(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value !== 'null';
}

/** Reasons other than the end, a stop string and calls, as engines and the services behind some of them name them. */
const LIMIT =
  /^(?:length|model_length|max_tokens|max_output_tokens|max_length|model_context_window_exceeded|context_length_exceeded|repetition|time_limit)$/i;
const FILTER =
  /^(?:content_filter|content_filtered|guardrail_intervened|sensitive|(?:image_)?(?:safety|recitation|prohibited_content)|language|blocklist|spii|refusal)$/i;
const GIVEN_UP =
  /^(?:abort|aborted|error|cancel|canceled|cancelled|timeout|network_error|insufficient_system_resource|malformed_(?:function_call|response|tool_use|model_output)|unexpected_tool_call|too_many_tool_calls|missing_thought_signature)$/i;

export const GAVE_UP: ClientError = {
  status: 502,
  message: 'Server error: the model server gave up the answer. Try again.',
  code: 'upstream_aborted',
};

/** Whether the engine did not end the answer but gave it up, as vLLM, SGLang and services say in the reason to stop. */
export function isGivenUp(reason: unknown): boolean {
  return typeof reason === 'string' && GIVEN_UP.test(reason);
}

/**
 * Why a chat engine stopped. Some engines send `stop` beside tool calls and some `tool_calls` without any, so the calls
 * decide. A limit or a filter cuts calls short and is kept.
 */
export function stopOfChat(finish: unknown, hasCalls: boolean, matched: boolean): StopReason {
  const said = typeof finish === 'string' ? finish : '';
  if (LIMIT.test(said)) return 'length';
  if (FILTER.test(said)) return 'filter';
  if (hasCalls) return 'tool';
  return matched ? 'stop_sequence' : 'end';
}

const FROM_MESSAGES = new Map<unknown, StopReason>([
  ['max_tokens', 'length'],
  ['stop_sequence', 'stop_sequence'],
  ['tool_use', 'tool'],
  ['pause_turn', 'pause'],
  ['refusal', 'filter'],
  ['model_context_window_exceeded', 'context'],
]);

export function stopOfMessages(reason: unknown, hasCalls: boolean): StopReason {
  const stop = FROM_MESSAGES.get(reason) ?? stopOfChat(reason, hasCalls, false);
  return stop === 'tool' && !hasCalls ? 'end' : stop;
}

/** @param reason `incomplete_details.reason`, which a complete response lacks */
export function stopOfResponses(reason: unknown, hasCalls: boolean, isWhole: boolean): StopReason {
  if (reason === 'content_filter') return 'filter';
  // Engines leave out the reason, or have one of their own.
  if (reason === 'max_output_tokens' || !isWhole) return 'length';
  return hasCalls ? 'tool' : 'end';
}

export const CHAT_FINISH = {
  end: 'stop',
  length: 'length',
  tool: 'tool_calls',
  filter: 'content_filter',
  stop_sequence: 'stop',
  pause: 'stop',
  context: 'length',
} as const satisfies Record<StopReason, string>;

export const MESSAGES_STOP = {
  end: 'end_turn',
  length: 'max_tokens',
  tool: 'tool_use',
  filter: 'refusal',
  stop_sequence: 'stop_sequence',
  pause: 'pause_turn',
  context: 'model_context_window_exceeded',
} as const satisfies Record<StopReason, string>;

/** Why a response is incomplete, or undefined when it is complete. */
export function incompleteReason(stop: StopReason): 'max_output_tokens' | 'content_filter' | undefined {
  if (stop === 'length' || stop === 'context') return 'max_output_tokens';
  return stop === 'filter' ? 'content_filter' : undefined;
}
