import { type LogLine, stampOf } from '../../../kube/streams/pod-log.ts';

/** Where a line stands: the same at every replica and at every reading. */
export interface Position {
  /** The start of the instance, whose pod has the log. */
  start: number;
  time: string;
  /** Lines before it with the same time. */
  count: number;
}

/** The id of a line, which a client sends back as Last-Event-ID. */
export function idOf({ start, time, count }: Position): string {
  return `${start}-${time}-${count}`;
}

/** Undefined for an id that is none of a line. */
export function positionOf(id: string | undefined): Position | undefined {
  const [, start, text = '', count] = /^(\d{1,9})-([\dT:.Z-]{30})-(\d{1,9})$/.exec(id ?? '') ?? [];
  const time = stampOf(text);
  return time === undefined ? undefined : { start: Number(start), time, count: Number(count) };
}

/**
 * Numbers the lines of one start, and passes over those up to a position. The kubelet gives lines from a whole second on,
 * so some of them were seen before.
 */
export class LineCursor {
  readonly #start: number;
  /** Lines up to here are passed over. Undefined once the next line was met. */
  #after: Position | undefined;
  #met = false;
  #last: Position | undefined;

  constructor(start: number, after: Position | undefined) {
    this.#start = start;
    this.#after = after;
  }

  /** Whether the position was met, or there was none to meet. */
  get isPlaced(): boolean {
    return this.#met || this.#after === undefined;
  }

  /** Where the line stands; undefined for one that was seen before. `gap`: the line before it was not found again. */
  admit({ time }: LogLine): { position: Position; gap: boolean } | undefined {
    const count = this.#last?.time === time ? this.#last.count + 1 : 0;
    const position = { start: this.#start, time, count };
    this.#last = position;
    const after = this.#after;
    if (after === undefined) return { position, gap: false };
    const isSame = time === after.time && count === after.count;
    // What comes after the line that was met is new, also when the clock of the node was set back.
    if (!this.#met && (isSame || time < after.time || (time === after.time && count < after.count))) {
      this.#met = isSame;
      return undefined;
    }
    this.#after = undefined;
    return { position, gap: !this.#met };
  }
}
