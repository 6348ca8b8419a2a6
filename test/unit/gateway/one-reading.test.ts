/** Bodies that a model server may read otherwise than the gateway: they reach none. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CALLER, gatewayTo, post, type TestGateway } from '../../support/model-gateway.ts';
import { ambiguousForms, FORM_TYPE, formOf, textPart } from '../../support/ambiguous-bodies.ts';
import type { ScriptedEngine } from '../../support/scripted-engine.ts';

const PATHS = ['chat/completions', 'responses', 'messages', 'completions', 'embeddings', 'messages/count_tokens'];
const CHAT = '"messages":[{"role":"user","content":"Hi"}],"input":"Hi","prompt":"Hi","max_tokens":5';
const PLAIN = {
  '/v1/completions': { contentType: 'application/json', body: '{"choices":[],"usage":{}}' },
  '/v1/embeddings': { contentType: 'application/json', body: '{"object":"list","data":[]}' },
  '/v1/audio/transcriptions': { contentType: 'application/json', body: '{"text":"Hi"}' },
};

describe('what a server may read otherwise', () => {
  let gateway: TestGateway;
  let engine: ScriptedEngine;
  let close: () => Promise<void>;

  beforeAll(async () => {
    const started = await gatewayTo({ models: ['tiny', 'large'], plain: PLAIN });
    ({ gateway, close } = started);
    engine = started.engines[0] as ScriptedEngine;
    gateway.callAs({ ...CALLER, models: ['tiny'] });
  });
  afterAll(() => close());

  async function refusal(path: string, body: string | Buffer, headers: Record<string, string> = {}): Promise<string> {
    const before = engine.received.length;
    const init = { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } };
    const response = await fetch(`${gateway.base}/v1/${path}`, init);
    const { error } = (await response.json()) as { error?: { message?: string } };
    expect([response.status, engine.received.length - before]).toEqual([400, 0]);
    return error?.message ?? '';
  }

  it.each(PATHS)('%s: a name that stands twice, in any spelling and at any depth', async (path) => {
    for (const body of [
      `{"model":"large","model":"tiny",${CHAT}}`,
      `{"model":"tiny",${CHAT},"model":"tiny"}`,
      String.raw`{"mod\u0065l":"large","model":"tiny",${CHAT}}`,
      `{"model":"tiny",${CHAT},"stream":true,"stream":false}`,
      `{"model":"tiny",${CHAT},"a":[{"b":{"c":1,"d":{},"c":{"e":[1,2]}}}]}`,
      `{"model":"tiny",${CHAT},"":1,"":2}`,
      `{"model":"tiny",${CHAT},"__proto__":{"model":"large"},"__proto__":1}`,
    ])
      expect(await refusal(path, body)).toContain('stands twice');
    expect(await refusal(path, `{"model":"large","model":"tiny",${CHAT}}`)).toBe(
      "The name 'model' stands twice in one object of the request body. Send it once.",
    );
  });

  it.each([
    ['Model', 'model'],
    ['MODEL', 'model'],
    [String.raw`\u004dodel`, 'model'],
    ['ſtream', 'stream'],
    ['Max_Tokens', 'max_tokens'],
    ['mesſages', 'messages'],
    ['Cache_Salt', 'cache_salt'],
  ])('a name that readers which ignore case take for another: %s', async (written, meant) => {
    for (const path of PATHS)
      expect(await refusal(path, `{"model":"tiny",${CHAT},"${written}":"large"}`)).toContain(`as '${meant}'`);
  });

  it.each([
    '{"messages":[{"role":"user","content":"a","Content":"b"}]}',
    '{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"Type":"image_url","image_url":{"URL":"data:,"}}]}]}',
    '{"messages":[{"role":"user","content":"a"}],"stream_options":{"Include_Usage":false}}',
    '{"messages":[{"role":"user","content":"a"}],"mine":1,"Mine":2}',
    '{"messages":[{"role":"user","content":"a"}],"type":"tool_use","input":[{"content":1,"Content":2}]}',
  ])('the same where a part of a prompt is: %s', async (fields) => {
    expect(await refusal('chat/completions', `{"model":"tiny",${fields.slice(1)}`)).toContain('Some servers read');
  });

  it.each([
    ['a byte order mark', Buffer.from(`\ufeff{"model":"tiny",${CHAT}}`), 'begins with a byte order mark'],
    ['bytes that are no UTF-8', Buffer.from(`{"model":"tiny\xff",${CHAT}}`, 'latin1'), 'not in UTF-8'],
    ['a surrogate as bytes', Buffer.from(`{"model":"tiny","x":"\xed\xa0\x80",${CHAT}}`, 'latin1'), 'not in UTF-8'],
    ['UTF-16', Buffer.from(`{"model":"tiny",${CHAT}}`, 'utf16le'), 'not valid JSON'],
    [
      'half a surrogate pair',
      String.raw`{"model":"tiny",${CHAT},"user":"\ud83d!"}`,
      "'user' has half of a surrogate pair",
    ],
    ['half a pair in a name', String.raw`{"model":"tiny",${CHAT},"a\udc00":1}`, 'has half of a surrogate pair'],
    ['a number beyond all', `{"model":"tiny",${CHAT},"top_k":1e999}`, "'top_k' is too large a number"],
    ['NaN', `{"model":"tiny",${CHAT},"top_k":NaN}`, 'not valid JSON'],
    ['a limit as text', `{"model":"tiny",${CHAT},"n":"50"}`, "Invalid 'n': expected a number"],
    ['a limit as a truth', `{"model":"tiny",${CHAT},"max_completion_tokens":true}`, 'expected a number'],
    ['101 levels', `{"model":"tiny",${CHAT},"x":${'['.repeat(100)}${']'.repeat(100)}}`, 'more than 100 levels'],
    ['60,000 levels', `{"model":"tiny",${CHAT},"x":${'{"x":['.repeat(30_000)}${']}'.repeat(30_000)}}`, '100 levels'],
  ])('%s', async (_name, body, message) => {
    for (const path of PATHS) expect(await refusal(path, body)).toContain(message);
  });

  it('a compressed body, also where tokens are counted', async () => {
    for (const path of PATHS) {
      const headers = { 'content-encoding': 'gzip' };
      expect((await post(gateway, path, `{"model":"tiny",${CHAT}}`, { headers })).status).toBe(415);
    }
  });

  it('nothing of what a tool, a schema or a quotation calls its own data', async () => {
    const schema = { type: 'object', properties: { Model: { type: 'string' }, model: { type: 'string' }, URL: {} } };
    const tools = [{ type: 'function', function: { name: 'f', parameters: schema } }];
    const large = '{"id":123456789012345678901234567890,"Mine":1.50,"seed":18446744073709551615}';
    const body = `{ "model" :"tiny",${CHAT}, "tools":${JSON.stringify(tools)},"metadata":{"Model":"a","model":"b"},"own":${large}}`;
    expect((await post(gateway, 'chat/completions', body)).status).toBe(200);
    expect(engine.received.at(-1)?.text).toContain(body.slice(body.indexOf('"model"')));
    const block = { type: 'tool_use', id: 'c', name: 'f', input: { Model: 1, model: 2, Stream: true } };
    const result = { type: 'tool_result', tool_use_id: 'c', content: 'ok' };
    const messages = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: [block] },
      { role: 'user', content: [result] },
    ];
    const response = await post(gateway, 'messages', { model: 'tiny', max_tokens: 5, messages });
    expect(response.status).toBe(200);
  });

  it.each(ambiguousForms('tiny', 'large'))('a form with %s', async (_name, type, body) => {
    expect(await refusal('audio/transcriptions', body, { 'content-type': type })).not.toBe('');
  });

  it.each([
    [
      'without quotes, as .NET writes it',
      'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=model\r\n\r\ntiny',
    ],
    [
      'with other capitals and headers',
      'content-disposition: Form-Data; NAME="model"\r\nContent-Length: 4\r\nContent-Transfer-Encoding: binary\r\n\r\ntiny',
    ],
  ])('a form is read and written anew: %s', async (_name, model) => {
    const file =
      'Content-Disposition: form-data; name="file"; filename="a\\"b/é.wav"; filename*=utf-8\'\'x.wav\r\nContent-Type: audio/wav;codecs=1\r\n\r\n\r\n--c\r\n';
    const body = formOf(
      model,
      file,
      textPart('stream', 'No'),
      textPart('include[]', 'a'),
      textPart('include[]', 'b'),
      textPart('chunking_strategy[type]', 'server_vad'),
    );
    const init = { method: 'POST', body, headers: { 'content-type': `${FORM_TYPE}; charset=utf-7` } };
    expect((await fetch(`${gateway.base}/v1/audio/transcriptions`, init)).status).toBe(200);
    const { headers, text } = engine.received.at(-1) ?? { headers: {}, text: '' };
    const boundary = /^multipart\/form-data; boundary=(berth-[\w-]+)$/.exec(headers['content-type'] ?? '')?.[1];
    const field = (name: string, value: string) =>
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    expect(text).toBe(
      `${field('model', 'tiny')}--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a_b_é.wav"\r\nContent-Type: audio/wav\r\n\r\n\r\n--c\r\n\r\n` +
        `${field('stream', 'false')}${field('include[]', 'a')}${field('include[]', 'b')}${field('chunking_strategy[type]', 'server_vad')}--${boundary}--\r\n`,
    );
  });
});
