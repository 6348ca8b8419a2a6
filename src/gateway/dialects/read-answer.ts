import { withExactNumbers } from '../../lib/exact-json.ts';
import { readJson } from '../../lib/json.ts';
import { withExactInputs } from './tool-arguments.ts';

/** Text without the mark of byte order that some servers put in front. */
export function withoutMark(text: Buffer): Buffer {
  return text[0] === 0xef && text[1] === 0xbb && text[2] === 0xbf ? text.subarray(3) : text;
}

/** A whole answer, to be translated. Throws SyntaxError. */
export function readAnswer(bytes: Buffer): unknown {
  const text = bytes.toString('utf8');
  return withExactInputs(readJson(text), text);
}

/** A whole answer, to be written again with every number as it is. Throws SyntaxError. */
export function readAnswerExactly(bytes: Buffer): unknown {
  const text = bytes.toString('utf8');
  return withExactNumbers(readJson(text), text, () => true);
}
