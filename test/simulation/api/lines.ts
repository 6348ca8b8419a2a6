import type { KubeObject } from '../../../src/kube/types.ts';
import { settled } from './settled.ts';

const { parse } = JSON;
const NEWLINE = 0x0a;

/** One line of a watch, or one answer, which is parsed before it is sent. */
export class Line {
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = settled(value);
  }

  static of(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: KubeObject): Line {
    return new Line({ type, object });
  }
}

/**
 * Some lines as one chunk of a stream, with what the client reads of a Buffer. Each line is one byte before its newline;
 * its text is the Line itself, which JSON.parse takes while a world runs: see `parsesLines`.
 */
export class Lines {
  readonly #lines: readonly Line[];

  constructor(lines: readonly Line[]) {
    this.#lines = lines;
  }

  get length(): number {
    return this.#lines.length * 2;
  }

  indexOf(byte: number, from = 0): number {
    if (byte !== NEWLINE) throw new RangeError(`Nobody looks for ${byte} in a watch.`);
    return from < this.length ? from + 1 : -1;
  }

  subarray(from: number): { length: 1; toString: () => Line | undefined } {
    return { length: 1, toString: () => this.#lines[from / 2] };
  }
}

/** No JSON begins so. */
const MARK = '\0';
/** Answers that are read and not parsed yet, by what stands for their text. */
const answers = new Map<string, unknown>();
let answered = 0;

/** An answer as the one chunk of its body. */
export class AnswerChunk {
  readonly #line: Line;
  readonly length = 1;

  constructor(line: Line) {
    this.#line = line;
  }

  toString(): string {
    answered += 1;
    const text = `${MARK}${answered}`;
    answers.set(text, this.#line.value);
    return text;
  }
}

function answerOf(text: string): unknown {
  const value = answers.get(text);
  answers.delete(text);
  return value;
}

/** Lets JSON.parse take lines and answers, until the answer is called. Most of the time of a world would else go there. */
export function parsesLines(): () => void {
  JSON.parse = (text: unknown, reviver?: Parameters<typeof parse>[1]): unknown => {
    if (text instanceof Line) return text.value;
    return typeof text === 'string' && text.startsWith(MARK) ? answerOf(text) : parse(text as string, reviver);
  };
  return () => {
    JSON.parse = parse;
  };
}
