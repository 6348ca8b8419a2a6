import type { RawMessageStreamEvent, Usage } from '@anthropic-ai/sdk/resources/messages';
import { emptyCollected, must, readEvents, type Collected } from './sse.ts';

const DELTA_OF = {
  text: ['text_delta'],
  thinking: ['thinking_delta', 'signature_delta'],
  tool_use: ['input_json_delta'],
  redacted_thinking: [],
} as const;

/** Reads a messages stream and throws at the first event a strict client would refuse. */
export function collectMessages(stream: string): Collected {
  const result = emptyCollected();
  let usage: Partial<Usage> = {};
  let open: { index: number; type: keyof typeof DELTA_OF; deltas: number; signatures: number } | undefined;
  let next = 0;
  let phase: 'before' | 'blocks' | 'ended' | 'stopped' = 'before';
  for (const { event, data } of readEvents(stream)) {
    const body = JSON.parse(data) as RawMessageStreamEvent;
    must(event === body.type, `event line ${String(event)} differs from type ${body.type}`);
    must(phase !== 'stopped', `${body.type} after message_stop`);
    must((phase === 'before') === (body.type === 'message_start'), `${body.type} in phase ${phase}`);
    switch (body.type) {
      case 'message_start':
        must(body.message.content.length === 0 && body.message.stop_reason === null, 'message_start is not empty');
        must(body.message.usage.input_tokens > 0, 'message_start without input tokens');
        ({ usage } = body.message);
        phase = 'blocks';
        break;
      case 'content_block_start': {
        must(phase === 'blocks' && open === undefined, 'block started inside another or after the end');
        must(body.index === next, `index ${body.index}, expected ${next}`);
        next++;
        const block = body.content_block;
        must(block.type in DELTA_OF, `unknown block ${block.type}`);
        open = { index: body.index, type: block.type as keyof typeof DELTA_OF, deltas: 0, signatures: 0 };
        result.order.push(block.type);
        if (block.type === 'tool_use') {
          must(JSON.stringify(block.input) === '{}', 'tool input not empty at start');
          result.calls.push({ id: block.id, name: block.name, arguments: '' });
        }
        break;
      }
      case 'content_block_delta': {
        must(open !== undefined && open.index === body.index, `delta for block ${body.index}, which is not open`);
        const allowed: readonly string[] = DELTA_OF[open.type];
        must(allowed.includes(body.delta.type), `${body.delta.type} inside ${open.type}`);
        open.deltas++;
        if (body.delta.type === 'text_delta') result.text += body.delta.text;
        if (body.delta.type === 'thinking_delta') result.reasoning += body.delta.thinking;
        if (body.delta.type === 'signature_delta') open.signatures++;
        const call = result.calls.at(-1);
        if (body.delta.type === 'input_json_delta' && call) call.arguments += body.delta.partial_json;
        break;
      }
      case 'content_block_stop':
        must(open !== undefined && open.index === body.index, `stop of block ${body.index}, which is not open`);
        must(open.type !== 'text' || open.deltas > 0, 'empty text block');
        must(open.type !== 'thinking' || open.signatures === 1, 'thinking without its one signature');
        open = undefined;
        break;
      case 'message_delta':
        must(open === undefined && phase === 'blocks', 'message_delta too early or twice');
        phase = 'ended';
        result.stop = String(body.delta.stop_reason);
        usage = { ...usage, ...body.usage } as Usage;
        break;
      case 'message_stop':
        must(phase === 'ended', 'message_stop without message_delta');
        phase = 'stopped';
        break;
    }
  }
  must(phase === 'stopped', 'no message_stop');
  const cached = usage.cache_read_input_tokens ?? 0;
  result.usage = { input: (usage.input_tokens ?? 0) + cached, output: usage.output_tokens ?? 0, cached };
  return result;
}
