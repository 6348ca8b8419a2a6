import type { Json } from '../../../lib/json.ts';
import { objectsOf, optionalString, textValue } from '../fields.ts';
import { DialectError } from '../errors/dialect-error.ts';
import { GAVE_UP, isGivenUp, stopOfMessages } from '../stop-reason.ts';
import { argumentsOf } from '../tool-arguments.ts';
import type { IrResponse, OutputItem } from '../types.ts';
import { parseUsage } from '../usage.ts';

/** A messages answer in the internal form. Skips blocks of unknown kinds. */
export function parseMessagesResponse(body: Json): IrResponse | undefined {
  if (!Array.isArray(body.content)) return undefined;
  if (isGivenUp(body.stop_reason)) throw new DialectError(GAVE_UP);
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
      return [{ kind: 'text', text: textValue(block.text) }];
    case 'thinking': {
      const signature = optionalString(block.signature);
      return [{ kind: 'reasoning', text: textValue(block.thinking), ...(signature && { signature }) }];
    }
    case 'redacted_thinking':
      return [{ kind: 'reasoning', text: '', redacted: textValue(block.data) }];
    case 'tool_use':
      return [
        {
          kind: 'call',
          callId: textValue(block.id),
          name: textValue(block.name),
          arguments: argumentsOf(block.input),
        },
      ];
    default:
      return [];
  }
}
