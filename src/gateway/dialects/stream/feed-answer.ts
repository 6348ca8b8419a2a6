import type { IrResponse, OutputItem } from '../types.ts';
import type { BlockSequencer } from './sequencer.ts';

/** Feeds a whole answer to a sequencer, as if it had come as a stream. The caller finishes it. */
export function feedAnswer({ items, stop, stopSequence, usage }: IrResponse, sink: BlockSequencer): void {
  sink.usage = usage;
  sink.stop(() => stop, stopSequence);
  for (const [index, item] of items.entries()) {
    sink.seal();
    feed(item, index, sink);
  }
}

function feed(item: OutputItem, index: number, sink: BlockSequencer): void {
  if (item.kind === 'call') {
    sink.call(index, item.callId, item.name);
    sink.callArguments(index, item.arguments);
    return;
  }
  sink[item.kind](item.text);
  if (item.kind !== 'reasoning') return;
  const { signature, redacted, opaque } = item;
  if ((signature ?? redacted ?? opaque) !== undefined) sink.reasoningMark({ signature, redacted, opaque });
}
