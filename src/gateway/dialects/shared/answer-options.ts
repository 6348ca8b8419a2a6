import { isObject, optionalBoolean } from '../fields.ts';
import { parseResponsesTools } from '../responses/tools.ts';
import type { Dialect, Json, ToolOrigin } from '../types.ts';

/** What the client's body says about the shape of the answer. */
export interface Wishes {
  body: Json;
  /** Tools declared as something else than plain functions, by their name on the wire. */
  origins: ReadonlyMap<string, ToolOrigin>;
  /** At most one call was asked for; engines that ignore the flag are held to it here. */
  singleCall: boolean;
  /** Chat streams: send the usage chunk. */
  includeUsage: boolean;
  /** Responses: show reasoning as a summary, the only form most clients display, because one was asked for. */
  summary: boolean;
}

/** Reads the wishes of a body that `inspectRequest` accepted. */
export function wishesOf(client: Dialect, request: unknown): Wishes {
  const body = isObject(request) ? request : {};
  const reasoning = isObject(body.reasoning) ? body.reasoning : {};
  return {
    body,
    origins: client === 'responses' ? originsOf(body.tools) : new Map(),
    singleCall: wantsSingleCall(client, body),
    includeUsage: isObject(body.stream_options) && body.stream_options.include_usage === true,
    summary: typeof reasoning.summary === 'string' || typeof reasoning.generate_summary === 'string',
  };
}

function originsOf(tools: unknown): Map<string, ToolOrigin> {
  const origins = new Map<string, ToolOrigin>();
  for (const tool of parseResponsesTools(tools)) if (tool.origin !== undefined) origins.set(tool.name, tool.origin);
  return origins;
}

function wantsSingleCall(client: Dialect, body: Json): boolean {
  if (client !== 'messages') return optionalBoolean(body.parallel_tool_calls) === false;
  return isObject(body.tool_choice) && body.tool_choice.disable_parallel_tool_use === true;
}
