/** What a scripted model answers, in any dialect. */
export interface Reply {
  text?: string;
  /** The text in the pieces in which it is streamed; by default halves. */
  tokens?: readonly string[];
  reasoning?: string;
  calls?: readonly { id: string; name: string; arguments: string }[];
  inputTokens?: number;
  outputTokens?: number;
  cachedTokens?: number;
}

type Json = Record<string, unknown>;

/** One SSE event: with a name in the responses and messages dialects, without in chat. */
export function sse(data: Json | string, event?: string): string {
  const payload = typeof data === 'string' ? data : JSON.stringify(data);
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${payload}\n\n`;
}

function halves(text: string): string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((part) => part !== '');
}

function counts({ inputTokens = 10, outputTokens = 5, cachedTokens = 0 }: Reply) {
  return { inputTokens, outputTokens, cachedTokens };
}

function chatUsage(reply: Reply): Json {
  const { inputTokens, outputTokens, cachedTokens } = counts(reply);
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
}

function chatCalls({ calls = [] }: Reply): Json[] {
  return calls.map(({ id, name, arguments: text }) => ({ id, type: 'function', function: { name, arguments: text } }));
}

export function chatWhole(model: string, reply: Reply): Json {
  const calls = chatCalls(reply);
  const message: Json = { role: 'assistant', content: reply.text ?? null };
  if (reply.reasoning !== undefined) message.reasoning_content = reply.reasoning;
  if (calls.length > 0) message.tool_calls = calls;
  const finish = calls.length > 0 ? 'tool_calls' : 'stop';
  const choices = [{ index: 0, message, logprobs: null, finish_reason: finish }];
  return { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model, choices, usage: chatUsage(reply) };
}

/** @param withUsage `each`: with every event, as vLLM and SGLang report it when they are asked for it */
export function chatEvents(model: string, reply: Reply, withUsage: boolean | 'each'): string[] {
  let written = reply.tokens === undefined ? 3 : -1;
  const chunk = (choices: Json[], usage?: Json): string => {
    if (reply.tokens !== undefined) written = Math.min(written + 1, reply.tokens.length);
    const counted = withUsage === 'each' ? { usage: chatUsage({ ...reply, outputTokens: written }) } : {};
    const event = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model, choices, ...counted };
    return sse({ ...event, ...(usage && { usage }) });
  };
  const delta = (delta: Json, finish: string | null = null): string =>
    chunk([{ index: 0, delta, logprobs: null, finish_reason: finish }]);
  const events = [delta({ role: 'assistant', content: '' })];
  for (const part of halves(reply.reasoning ?? '')) events.push(delta({ reasoning_content: part }));
  for (const part of reply.tokens ?? halves(reply.text ?? '')) events.push(delta({ content: part }));
  for (const [index, call] of (reply.calls ?? []).entries()) {
    const { id, name, arguments: text } = call;
    events.push(delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }));
    for (const part of halves(text)) events.push(delta({ tool_calls: [{ index, function: { arguments: part } }] }));
  }
  events.push(delta({}, (reply.calls ?? []).length > 0 ? 'tool_calls' : 'stop'));
  if (withUsage !== false) events.push(chunk([], chatUsage(reply)));
  return [...events, sse('[DONE]')];
}

function messagesUsage(reply: Reply): Json {
  const { inputTokens, outputTokens, cachedTokens } = counts(reply);
  return {
    input_tokens: inputTokens - cachedTokens,
    output_tokens: outputTokens,
    cache_read_input_tokens: cachedTokens,
    cache_creation_input_tokens: 0,
  };
}

export function messagesWhole(model: string, reply: Reply): Json {
  const content: Json[] = [];
  if (reply.reasoning !== undefined) content.push({ type: 'thinking', thinking: reply.reasoning, signature: 'sig' });
  if (reply.text !== undefined) content.push({ type: 'text', text: reply.text });
  for (const { id, name, arguments: text } of reply.calls ?? []) {
    content.push({ type: 'tool_use', id, name, input: JSON.parse(text) as unknown });
  }
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model,
    content,
    stop_reason: (reply.calls ?? []).length > 0 ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage: messagesUsage(reply),
  };
}

export function messagesEvents(model: string, reply: Reply): string[] {
  const whole = messagesWhole(model, reply);
  const usage = messagesUsage(reply);
  const start = { ...whole, content: [], stop_reason: null, usage: { ...usage, output_tokens: 0 } };
  const events = [sse({ type: 'message_start', message: start }, 'message_start')];
  let index = 0;
  const block = (open: Json, deltas: Json[]): void => {
    events.push(sse({ type: 'content_block_start', index, content_block: open }, 'content_block_start'));
    for (const delta of deltas) events.push(sse({ type: 'content_block_delta', index, delta }, 'content_block_delta'));
    events.push(sse({ type: 'content_block_stop', index }, 'content_block_stop'));
    index += 1;
  };
  if (reply.text !== undefined) {
    const deltas = (reply.tokens ?? halves(reply.text)).map((text) => ({ type: 'text_delta', text }));
    block({ type: 'text', text: '' }, deltas);
  }
  for (const { id, name, arguments: text } of reply.calls ?? []) {
    const deltas = halves(text).map((part) => ({ type: 'input_json_delta', partial_json: part }));
    block({ type: 'tool_use', id, name, input: {} }, deltas);
  }
  const delta = { stop_reason: whole.stop_reason, stop_sequence: null };
  events.push(sse({ type: 'message_delta', delta, usage }, 'message_delta'));
  return [...events, sse({ type: 'message_stop' }, 'message_stop')];
}

function responsesItems(reply: Reply): Json[] {
  const items: Json[] = [];
  if (reply.text !== undefined) {
    const content = [{ type: 'output_text', text: reply.text, annotations: [], logprobs: [] }];
    items.push({ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content });
  }
  for (const { id, name, arguments: text } of reply.calls ?? []) {
    items.push({ id: `fc_${id}`, type: 'function_call', status: 'completed', call_id: id, name, arguments: text });
  }
  return items;
}

let responses = 0;

export function responsesWhole(model: string, reply: Reply, id = `resp_${(responses += 1)}`): Json {
  const { inputTokens, outputTokens, cachedTokens } = counts(reply);
  return {
    id,
    object: 'response',
    created_at: 1,
    status: 'completed',
    model,
    output: responsesItems(reply),
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    temperature: 1,
    top_p: 1,
    usage: {
      input_tokens: inputTokens,
      input_tokens_details: { cached_tokens: cachedTokens },
      output_tokens: outputTokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: inputTokens + outputTokens,
    },
  };
}

export function responsesEvents(model: string, reply: Reply): string[] {
  const whole = responsesWhole(model, reply);
  const pending = { ...whole, status: 'in_progress', output: [], usage: null };
  const events: string[] = [];
  const push = (type: string, fields: Json): void => {
    events.push(sse({ type, sequence_number: events.length, ...fields }, type));
  };
  push('response.created', { response: pending });
  push('response.in_progress', { response: pending });
  for (const [index, item] of responsesItems(reply).entries()) {
    const at = { item_id: item.id, output_index: index };
    if (item.type === 'message') {
      const text = reply.text ?? '';
      const part = { type: 'output_text', text: '', annotations: [] };
      const place = { ...at, content_index: 0 };
      push('response.output_item.added', {
        output_index: index,
        item: { ...item, status: 'in_progress', content: [] },
      });
      push('response.content_part.added', { ...place, part });
      for (const delta of reply.tokens ?? halves(text))
        push('response.output_text.delta', { ...place, delta, logprobs: [] });
      push('response.output_text.done', { ...place, text, logprobs: [] });
      push('response.content_part.done', { ...place, part: { ...part, text } });
    } else {
      const text = String(item.arguments);
      push('response.output_item.added', {
        output_index: index,
        item: { ...item, status: 'in_progress', arguments: '' },
      });
      for (const delta of halves(text)) push('response.function_call_arguments.delta', { ...at, delta });
      push('response.function_call_arguments.done', { ...at, name: item.name, arguments: text });
    }
    push('response.output_item.done', { output_index: index, item });
  }
  push('response.completed', { response: whole });
  return events;
}
