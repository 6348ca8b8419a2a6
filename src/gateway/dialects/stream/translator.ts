import { ChatStreamParser } from '../chat/parse-stream.ts';
import { ChatEmitter } from '../chat/render-stream.ts';
import { DialectError } from '../errors/dialect-error.ts';
import { tokensOfText } from '../inspect/estimate-tokens.ts';
import { MessagesStreamParser } from '../messages/parse-stream.ts';
import { MessagesEmitter } from '../messages/render-stream.ts';
import { ResponsesStreamParser } from '../responses/parse-stream.ts';
import { ResponsesEmitter } from '../responses/render-stream.ts';
import type { ClientError, Dialect, HistoryItem, TranslationContext, Usage } from '../types.ts';
import { wishesOf } from '../shared/answer-options.ts';
import type { Emitter } from './emitter.ts';
import { BlockSequencer } from './sequencer.ts';
import { SseReader } from './sse-reader.ts';

export interface StreamTranslator {
  /** Raw upstream bytes in, client SSE text out (possibly empty). Chunk boundaries may fall anywhere. */
  push(chunk: Uint8Array): string;
  /** The upstream ended: closes what is open; a stream cut short becomes an error in the client's dialect. */
  end(): string;
  /** The upstream failed: the error event and the end of the stream. Empty when already finished. */
  fail(error: ClientError): string;
  readonly usage: Usage | undefined;
  /** Best count so far when no usage was reported (client or backend gone): for billing partial output. */
  readonly estimatedOutputTokens: number;
  readonly items: HistoryItem[];
  /** The id the client sees, if its dialect is responses. */
  readonly responseId: string;
  /** The terminal event has been written, good or bad. */
  readonly finished: boolean;
  /** The error that ended the stream, reported by the backend or by `fail`. */
  readonly error: ClientError | undefined;
}

const CUT_SHORT: ClientError = {
  status: 502,
  message: 'The model server closed the connection before the answer was complete.',
  code: 'upstream_closed',
};

/** One machine per stream: reads `upstream` events, writes `client` events. */
export function createStreamTranslator(
  upstream: Dialect,
  client: Dialect,
  context: TranslationContext,
): StreamTranslator {
  const wishes = wishesOf(client, context.request);
  const sequencer = new BlockSequencer({
    emitter: createEmitter(client, context, wishes),
    id: context.id,
    singleCall: wishes.singleCall,
  });
  const parser = createParser(upstream, sequencer);
  const reader = new SseReader((data) => {
    if (!sequencer.finished) parser.event(data);
  });
  return {
    push(chunk) {
      try {
        reader.push(chunk);
      } catch (error) {
        if (!(error instanceof DialectError)) throw error;
        sequencer.fail({ status: error.status, message: error.message });
      }
      return sequencer.take();
    },
    end() {
      reader.end();
      if (sequencer.stopped) sequencer.finish();
      else sequencer.fail(CUT_SHORT);
      return sequencer.take();
    },
    fail(error) {
      sequencer.fail(error);
      return sequencer.take();
    },
    get usage() {
      return sequencer.usage;
    },
    get estimatedOutputTokens() {
      return sequencer.items.reduce(
        (sum, item) => sum + tokensOfText(item.kind === 'call' ? item.arguments : item.text),
        0,
      );
    },
    get items() {
      return sequencer.items;
    },
    responseId: `resp_${context.id}`,
    get finished() {
      return sequencer.finished;
    },
    get error() {
      return sequencer.error;
    },
  };
}

function createEmitter(client: Dialect, context: TranslationContext, wishes: ReturnType<typeof wishesOf>): Emitter {
  if (client === 'chat') return new ChatEmitter(context, wishes);
  return client === 'messages' ? new MessagesEmitter(context) : new ResponsesEmitter(context, wishes);
}

function createParser(upstream: Dialect, sink: BlockSequencer): { event(data: string): void } {
  if (upstream === 'chat') return new ChatStreamParser(sink);
  return upstream === 'messages' ? new MessagesStreamParser(sink) : new ResponsesStreamParser(sink);
}
