import { isObject } from '../../lib/json.ts';
import { parseJson } from '../dialects/index.ts';
import type { PlainRoute } from '../../wire/model-endpoints.ts';

/** The stream that a whole answer stands for: some servers, and some models of OpenAI, leave out that one was asked for. */
export function wholeAsEvents(route: PlainRoute, bytes: Buffer): Buffer {
  const text = bytes.toString('utf8');
  if (route !== 'transcriptions') return Buffer.from(`${eventOf(text)}data: [DONE]\n\n`);
  const body = parseJson(text);
  const { text: heard = '', usage } = isObject(body) ? body : {};
  return Buffer.from(eventOf(JSON.stringify({ type: 'transcript.text.done', text: heard, usage })));
}

/** A JSON text may have line ends between its tokens, and has none inside of them. */
function eventOf(json: string): string {
  return `data: ${json.replaceAll(/[\r\n]+/g, ' ').trim()}\n\n`;
}
