/** How servers refuse a route that they do not have, and a body that is empty. */
import { describe, expect, it } from 'vitest';
import { ProbeError } from '../../../src/gateway/discovery/route-test.ts';
import { routeTest } from '../../../src/gateway/discovery/route-test.ts';

type Answer = [status: number, body: unknown];

/** A server that answers `answer` on the route, and `missing` on any other. */
async function has(path: string, answer: Answer, missing: Answer): Promise<boolean> {
  const test = await routeTest((asked) => {
    const [status, body] = asked === path ? answer : missing;
    const text = (typeof body === 'string' ? body : JSON.stringify(body)).replace('PATH', asked);
    return Promise.resolve({
      status,
      text,
      json: typeof body === 'string' ? undefined : (JSON.parse(text) as unknown),
    });
  }, '');
  return test(path);
}

const CHAT = '/v1/chat/completions';
const MESSAGES = '/v1/messages';
const EMBEDDINGS = '/v1/embeddings';
const FASTAPI: Answer = [404, { detail: 'Not Found' }];
const required = (field: string) => ({ detail: [{ type: 'missing', loc: ['body', field], msg: 'Field required' }] });

describe('a route is there', () => {
  it.each<[string, string, Answer, Answer]>([
    ['vLLM and SGLang (FastAPI)', CHAT, [422, required('messages')], FASTAPI],
    ['vLLM with its own words', MESSAGES, [400, { error: { message: '1 validation error', code: 400 } }], FASTAPI],
    // ggml-org/llama.cpp: json.exception became a 500 until its server had errors of its own.
    [
      'old llama.cpp',
      CHAT,
      [
        500,
        {
          error: {
            code: 500,
            message: "[json.exception.out_of_range.403] key 'messages' not found",
            type: 'server_error',
          },
        },
      ],
      [404, { error: { message: 'File Not Found', code: 404 } }],
    ],
    [
      'Ollama, which looks for a model first',
      CHAT,
      [404, { error: { message: "model '' not found", type: 'not_found_error' } }],
      [404, '404 page not found'],
    ],
    [
      'a server whose errors have the status 200',
      CHAT,
      [200, { object: 'error', message: 'messages: Field required' }],
      FASTAPI,
    ],
    ['a server that fails without a word, in chat', CHAT, [500, 'Internal Server Error'], FASTAPI],
    ['a server that answers nothing to say with an answer', CHAT, [200, { choices: [] }], FASTAPI],
  ])('%s', async (_name, path, answer, missing) => {
    expect(await has(path, answer, missing)).toBe(true);
  });
});

describe('a route is not there', () => {
  it.each<[string, string, Answer, Answer]>([
    ['FastAPI', MESSAGES, FASTAPI, FASTAPI],
    ['405', MESSAGES, [405, ''], FASTAPI],
    [
      'llama.cpp without --embeddings',
      EMBEDDINGS,
      [501, { error: { code: 501, message: 'This server does not support embeddings. Start it with `--embeddings`' } }],
      FASTAPI,
    ],
    [
      'vLLM with a model for text',
      EMBEDDINGS,
      [400, { error: { message: 'The model does not support Embeddings API', code: 400 } }],
      FASTAPI,
    ],
    [
      'LM Studio, with a 200',
      MESSAGES,
      [200, { error: 'Unexpected endpoint or method. (POST PATH)' }],
      [200, { error: 'Unexpected endpoint or method. (POST PATH)' }],
    ],
    ['a 200 with an error about the route alone', MESSAGES, [200, { error: 'unknown endpoint' }], FASTAPI],
    ['a page for everything', MESSAGES, [200, '<html>Welcome</html>'], [200, '<html>Welcome</html>']],
    ['a page that differs for each path', MESSAGES, [200, '<html>1</html>'], [200, '<html>2</html>']],
    [
      'one refusal for everything',
      MESSAGES,
      [400, { error: 'bad request for PATH' }],
      [400, { error: 'bad request for PATH' }],
    ],
    ['a failure for everything', CHAT, [500, 'Internal Server Error'], [500, 'Internal Server Error']],
    ['a failure without a word, besides chat', MESSAGES, [500, 'Internal Server Error'], FASTAPI],
    ['a proxy that is full, for a route on the side', EMBEDDINGS, [503, 'busy'], FASTAPI],
    [
      'a 404 for everything that speaks of models',
      MESSAGES,
      [404, { error: 'no model server here' }],
      [404, { error: 'no model server here' }],
    ],
  ])('%s', async (_name, path, answer, missing) => {
    expect(await has(path, answer, missing)).toBe(false);
  });

  it.each([502, 503, 504])('or is: a server that is not ready says neither with %d', async (status) => {
    await expect(has(CHAT, [status, 'no upstream'], [status, 'no upstream'])).rejects.toThrow(ProbeError);
  });
});
