import { endOfString } from '../../../lib/json-structure.ts';

const [QUOTE, COMMA, BRACKET, BRACKET_END, BRACE, BRACE_END] = [0x22, 0x2c, 0x5b, 0x5d, 0x7b, 0x7d];

/** A JSON object without the elements of a list in it, and the texts of these. */
export interface Pieces {
  rest: string;
  elements: string[];
}

/**
 * Cuts the objects in the list `name` out of a JSON object, so that nothing parses all of them in one go. What is no JSON stays
 * none: it is in the rest or in an element. Undefined with more than `most` elements.
 */
export function cutList(json: Buffer, name: string, most: number): Pieces | undefined {
  const kept: string[] = [];
  const keep = (to: number): void => {
    if (to > from) kept.push(json.toString('utf8', from, to));
  };
  const isKey = (): boolean => keyEnd - key === name.length && json.toString('latin1', key, keyEnd) === name;
  const elements: string[] = [];
  let from = 0;
  let start = 0;
  let depth = 0;
  /** Where the last text of the object itself is. */
  let key = 0;
  let keyEnd = 0;
  let isInList = false;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === QUOTE) {
      const end = endOfString(json, at + 1);
      if (depth === 1) {
        key = at + 1;
        keyEnd = end;
      }
      at = end;
    } else if (byte === BRACE || byte === BRACKET) {
      isInList ||= depth === 1 && byte === BRACKET && isKey();
      if (depth === 2 && isInList) start = at;
      depth += 1;
    } else if (byte === BRACE_END || byte === BRACKET_END) {
      depth -= 1;
      if (depth === 2 && isInList) {
        if (elements.length === most) return undefined;
        keep(start);
        elements.push(json.toString('utf8', start, at + 1));
        from = at + 1;
      }
      if (depth <= 1) isInList = false;
    } else if (byte === COMMA && depth === 2 && isInList && from === at) {
      // Right behind an element.
      from = at + 1;
    }
  }
  keep(json.length);
  return { rest: kept.join(''), elements };
}
