import type { Dispatcher } from 'undici';
import { ByteBlocks } from '../../lib/byte-blocks.ts';
import { countStructure } from '../../lib/json-structure.ts';
import { parseJson } from '../dialects/index.ts';
import type { EngineCredential } from '../../resources/model-servers/engine-credential.ts';

export interface SmallResponse {
  status: number;
  text: string;
  /** The parsed body, undefined when it is not JSON, or too much of it. Parsed when it is read, because metrics are no JSON. */
  readonly json: unknown;
}

/** Objects, lists and commas of an answer. A list of 512 models of vLLM has 12,000. */
const STRUCTURE_MAX = 20_000;

export interface SmallRequest {
  origin: string;
  path: string;
  /** With a body, the request is a POST of this JSON, else a GET. */
  body?: unknown;
  credential?: EngineCredential | undefined;
  signal?: AbortSignal;
  /** For the whole exchange. */
  timeoutMs: number;
  /** A longer answer is cut off, and the promise rejects. */
  maxBytes: number;
  /** What comes first says enough: the promise resolves with the start of a longer answer. */
  isStartEnough?: boolean;
}

export class AnswerTooLargeError extends Error {
  override readonly name = 'AnswerTooLargeError';
}

/** One HTTP exchange with a model server, bounded in time and size: a probe, a token count or a scrape. */
export async function smallRequest(dispatcher: Dispatcher, request: SmallRequest): Promise<SmallResponse> {
  const timeout = AbortSignal.timeout(request.timeoutMs);
  const response = await dispatcher.request({
    origin: request.origin,
    path: request.path,
    method: request.body === undefined ? 'GET' : 'POST',
    headers: {
      accept: 'application/json, text/plain',
      ...(request.body !== undefined && { 'content-type': 'application/json' }),
      ...(request.credential !== undefined && { authorization: request.credential.authorization }),
    },
    body: request.body === undefined ? null : JSON.stringify(request.body),
    signal: request.signal === undefined ? timeout : AbortSignal.any([timeout, request.signal]),
  });
  const blocks = new ByteBlocks();
  let size = 0;
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= request.maxBytes) blocks.add(chunk);
    else if (request.isStartEnough === true) {
      blocks.add(chunk.subarray(0, chunk.length - (size - request.maxBytes)));
      break;
    } else throw new AnswerTooLargeError(`The answer to ${request.path} is longer than ${request.maxBytes} bytes.`);
  }
  const bytes = blocks.take();
  const text = bytes.toString('utf8');
  return {
    status: response.statusCode,
    text,
    get json() {
      return parseAnswer(bytes, text);
    },
  };
}

/** The JSON of an answer; undefined when it is none, or has more values than any answer that is meant. */
export function parseAnswer(bytes: Buffer, text: string): unknown {
  return countStructure(bytes, STRUCTURE_MAX) > STRUCTURE_MAX ? undefined : parseJson(text);
}
