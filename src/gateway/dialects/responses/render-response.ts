import { isObject, type Json } from '../../../lib/json.ts';
import { parseJson } from '../fields.ts';
import { encodeReasoning, encodeSummary } from '../encrypted-content.ts';
import { incompleteReason } from '../stop-reason.ts';
import { argumentText } from '../tool-arguments.ts';
import type { CallItem, IrResponse, OutputItem, TranslationContext, Usage } from '../types.ts';
import { renderResponsesUsage } from '../usage.ts';
import type { AnswerOptions } from '../answer-options.ts';
import { renderOwnCall } from './own-tools.ts';

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

/** A whole answer as a response resource. Every item must have its id. */
export function renderResponsesResponse(
  response: IrResponse,
  context: TranslationContext,
  options: AnswerOptions,
): Json {
  const reason = incompleteReason(response.stop);
  return renderResource(context, options, {
    status: reason === undefined ? 'completed' : 'incomplete',
    output: renderOutput(response.items, reason, options),
    usage: response.usage,
    incomplete: reason,
  });
}

export interface ResourceState {
  status: 'in_progress' | 'completed' | 'incomplete' | 'failed';
  output: Json[];
  usage?: Usage;
  incomplete?: string;
  error?: { code: string; message: string };
}

/** The response resource with every field that the published schema requires. Most repeat the request. */
export function renderResource(context: TranslationContext, options: AnswerOptions, state: ResourceState): Json {
  const { body } = options;
  const done = state.status === 'completed';
  const resource: Json = {
    id: `resp_${context.id}`,
    object: 'response',
    created_at: context.createdAt,
    completed_at: done ? context.createdAt : null,
    status: state.status,
    background: false,
    access_programs: null,
    error: state.error ?? null,
    incomplete_details: state.incomplete === undefined ? null : { reason: state.incomplete },
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: body.max_tool_calls ?? null,
    model: context.model,
    output: state.output,
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: body.previous_response_id ?? null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    reasoning: isObject(body.reasoning)
      ? { effort: null, summary: null, ...body.reasoning }
      : { effort: null, summary: null },
    safety_identifier: body.safety_identifier ?? null,
    service_tier: 'default',
    store: !options.compacts && (body.store ?? true),
    temperature: body.temperature ?? 1,
    text: isObject(body.text) ? { format: { type: 'text' }, ...body.text } : { format: { type: 'text' } },
    tool_choice: body.tool_choice ?? 'auto',
    tools: Array.isArray(body.tools) ? body.tools : [],
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? 1,
    truncation: body.truncation ?? 'disabled',
    presence_penalty: 0,
    frequency_penalty: 0,
    metadata: body.metadata ?? {},
    // The published schema has these present or absent, never null.
    ...(state.usage !== undefined && { usage: renderResponsesUsage(state.usage) }),
    ...(typeof body.user === 'string' && { user: body.user }),
  };
  for (const [name, value] of Object.entries(context.begun ?? {})) if (!OF_THE_END.has(name)) resource[name] = value;
  return resource;
}

/** What changes from the start of a response to its end. */
const OF_THE_END: ReadonlySet<string> = new Set([
  'status',
  'completed_at',
  'error',
  'incomplete_details',
  'output',
  'usage',
]);

/** The output of an answer that has ended. What ended it early cut the last item: agents do not run a call that was cut. */
export function renderOutput(items: readonly OutputItem[], reason: string | undefined, options: AnswerOptions): Json[] {
  return items.map((item, index) => {
    const isCut = reason !== undefined && index === items.length - 1;
    return renderOutputItem(item, isCut ? 'incomplete' : 'completed', options);
  });
}

/** One output item. In progress it is empty, because its content follows as events. */
export function renderOutputItem(item: OutputItem, status: ItemStatus, options: AnswerOptions): Json {
  const open = status === 'in_progress';
  switch (item.kind) {
    case 'text':
    case 'refusal':
      if (options.compacts)
        return { id: item.id, type: 'compaction', encrypted_content: open ? '' : encodeSummary(item.text) };
      return { id: item.id, type: 'message', status, role: 'assistant', content: open ? [] : [renderPart(item)] };
    case 'call':
      return renderCall(item, status, options);
    default: {
      const parts = open || item.text === '' ? [] : [item.text];
      return {
        id: item.id,
        type: 'reasoning',
        status,
        summary: options.summary ? parts.map((text) => ({ type: 'summary_text', text })) : [],
        content: options.summary ? [] : parts.map((text) => ({ type: 'reasoning_text', text })),
        encrypted_content: open ? null : encodeReasoning(item),
      };
    }
  }
}

/** The content part of a message item. */
export function renderPart(item: { kind: 'text' | 'refusal'; text: string }): Json {
  if (item.kind === 'refusal') return { type: 'refusal', refusal: item.text };
  return { type: 'output_text', text: item.text, annotations: [], logprobs: [] };
}

function renderCall(item: CallItem, status: ItemStatus, options: AnswerOptions): Json {
  const origin = options.origins.get(item.name);
  const open = status === 'in_progress';
  if (origin?.type === 'own') return renderOwnCall(item, origin.name, status);
  if (origin?.type === 'custom') {
    return {
      id: item.id,
      type: 'custom_tool_call',
      status,
      call_id: item.callId,
      name: origin.name,
      ...(origin.namespace !== undefined && { namespace: origin.namespace }),
      input: open ? '' : customInput(item.arguments),
    };
  }
  return {
    id: item.id,
    type: 'function_call',
    status,
    call_id: item.callId,
    name: origin?.name ?? item.name,
    ...(origin !== undefined && { namespace: origin.namespace }),
    arguments: open ? '' : argumentText(item.arguments),
  };
}

/** The free-form input of a custom tool, out of the arguments of the function that stands for it. */
export function customInput(text: string): string {
  const value = parseJson(text);
  return isObject(value) && typeof value.input === 'string' ? value.input : text;
}
