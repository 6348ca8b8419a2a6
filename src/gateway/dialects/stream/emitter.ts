import type { ClientError, OutputItem, StopReason, Usage } from '../types.ts';

/** How an answer ended. */
export interface Ending {
  stop: StopReason;
  stopSequence: string | undefined;
  usage: Usage | undefined;
  items: readonly OutputItem[];
}

/**
 * Writes one dialect's events. The sequencer calls it in an order that is always right: `start` once, then blocks one
 * after the other (`open`, deltas of that block, `close`), then `finish` or `fail` once.
 */
export interface Emitter {
  /** `usage` when the engine reports it from the start. */
  start(usage: Usage | undefined): string;
  open(item: OutputItem, index: number): string;
  delta(item: OutputItem, index: number, fragment: string): string;
  /** The item is complete. */
  close(item: OutputItem, index: number): string;
  finish(ending: Ending): string;
  /** `items` are the blocks so far, the last one possibly unfinished. */
  fail(error: ClientError, items: readonly OutputItem[]): string;
}
