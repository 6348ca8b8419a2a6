import type { CallItem, HistoryItem, OutputItem, ToolOrigin } from './types.ts';

/**
 * Output as the sequencer of a stream gives it: no empty items, one call when the client wants one, and no blank text
 * before a call, which agents show and the messages dialect refuses in replays.
 */
export function tidy<T extends HistoryItem>(items: readonly T[], singleCall: boolean): T[] {
  let calls = 0;
  return items.filter((item, position) => {
    if (item.kind === 'call') return ++calls === 1 || !singleCall;
    if (item.kind === 'reasoning' && item.callSignature !== undefined) return calls === 0 || !singleCall;
    if (item.kind === 'reasoning')
      return item.text !== '' || (item.redacted ?? item.opaque ?? item.signature) !== undefined;
    if (item.kind === 'message' || item.kind === 'result' || item.kind === 'tools' || item.kind === 'given')
      return true;
    if (item.text === '') return false;
    return item.text.trim() !== '' || items[position + 1]?.kind !== 'call';
  });
}

/**
 * Whether a call is none: it has neither a name nor arguments, as some engines end their calls. One without a name alone
 * stays: agents tell the model that there is no such tool, and it calls again.
 */
export function isNoCall({ name, arguments: text }: CallItem): boolean {
  return name === '' && ['', '{}'].includes(text.trim());
}

/** OpenAI refuses an item whose id begins otherwise, and so a conversation that goes on there. */
const PREFIXES = { text: 'msg', refusal: 'msg', reasoning: 'rs', call: 'fc' } as const;

/** The id of an output item: stable within an answer, unique between answers. */
export function itemId(kind: OutputItem['kind'], answer: string, index: number, origin?: ToolOrigin): string {
  return `${origin?.type === 'custom' ? 'ctc' : PREFIXES[kind]}_${answer}${index}`;
}
