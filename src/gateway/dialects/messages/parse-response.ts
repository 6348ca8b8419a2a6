import { objectsOf, optionalString } from '../fields.ts';
import { stopOfMessages } from '../shared/stop-reason.ts';
import { argumentsOf } from '../shared/tool-arguments.ts';
import type { IrResponse, Json, OutputItem } from '../types.ts';
import { parseUsage } from '../shared/usage.ts';

/** A messages answer in the internal form; blocks of kinds nobody asked for are skipped. */
export function parseMessagesResponse(body: Json): IrResponse | undefined {
  if (!Array.isArray(body.content)) return undefined;
  const items = objectsOf(body.content).flatMap(parseBlock);
  const hasCalls = items.some((item) => item.kind === 'call');
  return {
    items,
    stop: stopOfMessages(body.stop_reason, hasCalls),
    stopSequence: optionalString(body.stop_sequence),
    usage: parseUsage('messages', body.usage),
  };
}

function parseBlock(block: Json): OutputItem[] {
  switch (block.type) {
    case 'text':
      return [{ kind: 'text', text: optionalString(block.text) ?? '' }];
    case 'thinking': {
      const signature = optionalString(block.signature);
      return [{ kind: 'reasoning', text: optionalString(block.thinking) ?? '', ...(signature && { signature }) }];
    }
    case 'redacted_thinking':
      return [{ kind: 'reasoning', text: '', redacted: optionalString(block.data) ?? '' }];
    case 'tool_use':
      return [
        {
          kind: 'call',
          callId: optionalString(block.id) ?? '',
          name: optionalString(block.name) ?? '',
          arguments: argumentsOf(block.input),
        },
      ];
    default:
      return [];
  }
}
