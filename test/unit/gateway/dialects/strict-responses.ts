import type { Response, ResponseOutputItem, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { emptyCollected, must, readEvents, type Collected } from './sse.ts';

interface OpenItem {
  item: ResponseOutputItem;
  index: number;
  part: boolean;
  text: string;
}

const ENDS = new Set(['response.completed', 'response.incomplete', 'response.failed']);

/** Reads a responses stream and throws at the first event a strict client would refuse. */
export function collectResponses(stream: string): Collected {
  const events = readEvents(stream);
  must(events.at(-1)?.data === '[DONE]', 'no [DONE] at the end');
  const done: ResponseOutputItem[] = [];
  let open: OpenItem | undefined;
  let final: Response | undefined;
  for (const [position, { event, data }] of events.slice(0, -1).entries()) {
    const body = JSON.parse(data) as ResponseStreamEvent;
    must(event === body.type, `event line ${String(event)} differs from type ${body.type}`);
    must(body.sequence_number === position, `sequence_number ${body.sequence_number}, expected ${position}`);
    must(final === undefined, `${body.type} after the end`);
    const opening = ['response.created', 'response.in_progress'][position];
    must(opening === undefined || opening === body.type, `${body.type} at position ${position}`);
    if (ENDS.has(body.type) && 'response' in body) {
      must(open === undefined, 'the end came inside an item');
      final = body.response;
    } else if (body.type === 'response.output_item.added') {
      must(open === undefined, 'item added inside another');
      must(body.output_index === done.length, `output_index ${body.output_index}, expected ${done.length}`);
      open = { item: body.item, index: body.output_index, part: false, text: '' };
    } else if (position > 1) {
      must(open !== undefined, `${body.type} outside an item`);
      open = within(open, body, done);
    }
  }
  must(final !== undefined, 'no terminal event');
  must(JSON.stringify(final.output) === JSON.stringify(done), 'the final output differs from the items before');
  return collected(final);
}

/** An event inside an item; the item that is open afterwards. */
function within(open: OpenItem, body: ResponseStreamEvent, done: ResponseOutputItem[]): OpenItem | undefined {
  if ('item_id' in body) must(body.item_id === open.item.id, `${body.type} for another item`);
  if ('output_index' in body) must(body.output_index === open.index, `${body.type} for another index`);
  switch (body.type) {
    case 'response.content_part.added':
    case 'response.reasoning_summary_part.added':
      must(!open.part, 'part added twice');
      return { ...open, part: true };
    case 'response.output_text.delta':
      must(open.item.type === 'message' && open.part, 'text outside a message part');
      return { ...open, text: open.text + body.delta };
    case 'response.reasoning_text.delta':
    case 'response.reasoning_summary_text.delta':
      must(open.item.type === 'reasoning' && open.part, 'reasoning outside a reasoning part');
      return { ...open, text: open.text + body.delta };
    case 'response.function_call_arguments.delta':
      must(open.item.type === 'function_call', 'arguments outside a call');
      return { ...open, text: open.text + body.delta };
    case 'response.custom_tool_call_input.delta':
      must(open.item.type === 'custom_tool_call', 'input outside a custom call');
      return { ...open, text: open.text + body.delta };
    case 'response.output_text.done':
    case 'response.reasoning_text.done':
    case 'response.reasoning_summary_text.done':
      must(body.text === open.text && open.text !== '', `${body.type} differs from its deltas`);
      return open;
    case 'response.function_call_arguments.done':
      must(body.arguments === open.text, 'arguments differ from their deltas');
      return open;
    case 'response.custom_tool_call_input.done':
      must(body.input === open.text, 'input differs from its deltas');
      return open;
    case 'response.content_part.done':
    case 'response.reasoning_summary_part.done':
      must(open.part, 'part done that was not added');
      return { ...open, part: false };
    case 'response.output_item.done':
      must(!open.part, 'item done with its part open');
      must(body.item.id === open.item.id && body.item.type === open.item.type, 'the item changed');
      done.push(body.item);
      return undefined;
    default:
      throw new Error(`unexpected ${body.type}`);
  }
}

/** What a response resource says. */
function collected(response: Response): Collected {
  const result = emptyCollected();
  result.stop = response.incomplete_details?.reason ?? String(response.status);
  for (const item of response.output) {
    if (item.type === 'reasoning') {
      result.order.push('thinking');
      result.reasoning += [...(item.content ?? []), ...item.summary].map((part) => part.text).join('');
    } else if (item.type === 'message') {
      result.order.push('text');
      result.text += item.content.map((part) => (part.type === 'output_text' ? part.text : part.refusal)).join('');
    } else if (item.type === 'function_call') {
      result.order.push('tool_use');
      result.calls.push({ id: item.call_id, name: item.name, arguments: item.arguments });
    }
  }
  if (response.usage) {
    const { input_tokens: input, output_tokens: output, input_tokens_details: details } = response.usage;
    result.usage = { input, output, cached: details.cached_tokens };
  }
  return result;
}
