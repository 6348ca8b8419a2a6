import type { KubeObject } from '../../../src/kube/types.ts';
import { textOf } from './text.ts';

const { parse } = JSON;
const NEWLINE = 0x0a;

function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const inner of Object.values(value)) freeze(inner);
  return value;
}

const READ = new WeakMap<KubeObject, KubeObject>();

/** What every reader of this version of an object gets. It is parsed once, and none of them may change it. */
function readOf(object: KubeObject): KubeObject {
  let read = READ.get(object);
  if (read === undefined) {
    read = freeze(parse(textOf(object)) as KubeObject);
    READ.set(object, read);
  }
  return read;
}

/** One line of a watch, which is parsed before it is sent. */
export class Line {
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = freeze(value);
  }

  static of(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: KubeObject): Line {
    return new Line({ type, object: readOf(object) });
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

/** Lets JSON.parse take lines, until the answer is called. Most of the time of a world would else go there. */
export function parsesLines(): () => void {
  JSON.parse = (text: unknown, reviver?: Parameters<typeof parse>[1]): unknown =>
    text instanceof Line ? text.value : parse(text as string, reviver);
  return () => {
    JSON.parse = parse;
  };
}
