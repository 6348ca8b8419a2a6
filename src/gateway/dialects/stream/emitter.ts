import type { Json } from '../../../lib/json.ts';
import type { ClientError, OutputItem, StopReason, Usage } from '../types.ts';

/** How an answer ended. */
export interface Ending {
  stop: StopReason;
  stopSequence: string | undefined;
  usage: Usage | undefined;
  items: readonly OutputItem[];
}

/**
 * Writes the events of one dialect. The sequencer calls `start` once, then for one block after the other `open`,
 * `delta` any number of times and `close`, then `finish` or `fail` once.
 */
export interface Emitter {
  /** Responses only: the whole answer, once it has ended. */
  readonly response?: Json | undefined;
  /** Responses only: the number of the next event, where the client has those before. */
  resume?(sequence: number): void;
  /** `usage` is given when the engine reports it at the start. */
  start(usage: Usage | undefined): string;
  open(item: OutputItem, index: number): string;
  delta(item: OutputItem, index: number, fragment: string): string;
  /** The item ends. `isCut`: not because it is complete. */
  close(item: OutputItem, index: number, isCut: boolean): string;
  finish(ending: Ending): string;
  /** `items` are the blocks so far. The last one may be incomplete. */
  fail(error: ClientError, items: readonly OutputItem[]): string;
}
