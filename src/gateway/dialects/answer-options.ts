import { isObject, type Json } from '../../lib/json.ts';
import { objectsOf, optionalBoolean } from './fields.ts';
import { asksToCompact } from './responses/compaction.ts';
import { addedTools, offeredTools } from './responses/tools.ts';
import type { Dialect, HistoryItem, ToolOrigin, TranslationContext } from './types.ts';

/** What the client's body says about the form of the answer. */
export interface AnswerOptions {
  body: Json;
  /** Tools that are more than plain functions, by the name that the engine sees. */
  origins: ReadonlyMap<string, ToolOrigin>;
  /** The client wants one call at most. The gateway drops others, because some engines ignore the flag. */
  singleCall: boolean;
  /** Send the usage chunk of a chat stream. */
  includeUsage: boolean;
  /** Responses: show reasoning as a summary, which the client asked for. Most clients display no other form. */
  summary: boolean;
  /** Responses: the text of the answer is a summary of the conversation. */
  compacts: boolean;
}

/** Reads the options of a body that `inspectRequest` accepted. */
export function answerOptions(client: Dialect, { request, history = [] }: TranslationContext): AnswerOptions {
  const body = isObject(request) ? request : {};
  const reasoning = isObject(body.reasoning) ? body.reasoning : {};
  return {
    body,
    origins: client === 'responses' ? originsOf(body, history) : new Map(),
    singleCall: wantsSingleCall(client, body),
    includeUsage: isObject(body.stream_options) && body.stream_options.include_usage === true,
    compacts: client === 'responses' && asksToCompact(body.input),
    summary: typeof reasoning.summary === 'string' || typeof reasoning.generate_summary === 'string',
  };
}

function originsOf(body: Json, history: readonly HistoryItem[]): Map<string, ToolOrigin> {
  const origins = new Map<string, ToolOrigin>();
  for (const tool of offeredTools(body, [...history, ...addedTools(objectsOf(body.input))]))
    if (tool.origin !== undefined) origins.set(tool.name, tool.origin);
  return origins;
}

function wantsSingleCall(client: Dialect, body: Json): boolean {
  if (client !== 'messages') return optionalBoolean(body.parallel_tool_calls) === false;
  return isObject(body.tool_choice) && body.tool_choice.disable_parallel_tool_use === true;
}
