import { afterEach, describe, expect, it } from 'vitest';
import { CALLER, gatewayTo, post } from '../../support/model-gateway.ts';
import type { Behaviour, EngineOptions, ScriptedEngine } from '../../support/scripted-engine.ts';

const CHAT = { model: 'tiny', messages: [{ role: 'user', content: 'Say hello' }], stream: true, max_tokens: 50 };
const RESPONSES = { model: 'tiny', input: 'Say hello', stream: true };
const GOOD: Behaviour = { kind: 'answer', reply: { text: 'Hello there' } };
const TRANSLATED: EngineOptions = { engine: 'tgi' };
const NATIVE: EngineOptions = { engine: 'unknown', dialects: ['chat', 'responses', 'messages'] };

function stream(...chunks: string[]): Behaviour {
  return { kind: 'raw', contentType: 'text/event-stream', chunks };
}

/** vllm-project/vllm#24495: the error of a dead engine, behind a 200 when the call is a stream. */
const DEAD =
  '{"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root cause.","type":"Internal Server Error","param":null,"code":500}}';
/** huggingface/text-generation-inference#2668 */
const TGI = '{"error":{"message":"Request failed during generation: Server error","http_status_code":424}}';
const ROLE =
  'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n';

describe('a stream whose first event is an error', () => {
  const ends: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });

  async function setup(...options: EngineOptions[]) {
    const started = await gatewayTo(...options);
    ends.push(started.close);
    return started;
  }

  const SICK: [string, string, EngineOptions, Behaviour][] = [
    ['chat, native', 'chat/completions', NATIVE, stream(`data: ${DEAD}\n\n`, 'data: [DONE]\n\n')],
    ['behind a comment', 'chat/completions', NATIVE, stream(': ping\n\n', `: ping\n\ndata: ${DEAD}\n\n`)],
    ['with the role chunk', 'chat/completions', NATIVE, stream(`${ROLE}data: ${DEAD}\n\n`)],
    ['error not first', 'chat/completions', NATIVE, stream('data: {"id":"c","choices":[],"error":{"code":502}}\n\n')],
    ['chat for messages', 'messages', TRANSLATED, stream(`data: ${DEAD}\n\n`)],
    ['chat for responses', 'responses', TRANSLATED, stream(`data: ${DEAD}\n\n`)],
    [
      'messages, native',
      'messages',
      NATIVE,
      stream('event: error\ndata: {"type":"error","error":{"type":"internal_error","message":"EngineCore"}}\n\n'),
    ],
    ['messages without a type', 'messages', NATIVE, stream(`event: error\ndata: ${DEAD}\n\n`)],
    [
      'responses, native',
      'responses',
      NATIVE,
      stream(
        'event: response.failed\ndata: {"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_error","message":"EngineCore"}}}\n\n',
      ),
    ],
    // ggml-org/llama.cpp#14566
    ['the error line of old llama.cpp', 'chat/completions', NATIVE, stream('error: {"code":500,"message":"x"}\n\n')],
    ['the same, translated', 'messages', TRANSLATED, stream('error: {"code":500,"message":"x"}\n\n')],
    ['an error without the form of an event', 'chat/completions', NATIVE, stream(DEAD)],
    [
      'the same over several lines',
      'chat/completions',
      NATIVE,
      stream(`${JSON.stringify(JSON.parse(DEAD), null, 2)}\n\n`),
    ],
    ['the same, translated', 'messages', TRANSLATED, stream(DEAD)],
    ['nothing but comments', 'messages', TRANSLATED, stream(': ping\n\n')],
    ['nothing but comments, native', 'messages', NATIVE, stream(': ping\n\n')],
  ];

  it.each(SICK)('fails over, and opens the breaker for its tenant: %s', async (_name, path, options, sick) => {
    const body = path === 'responses' ? RESPONSES : CHAT;
    const { gateway, engines } = await setup(options, options);
    const [first, second] = engines as [ScriptedEngine, ScriptedEngine];
    await (await post(gateway, path, body)).text();
    const [home, other] = first.received.length > 0 ? [first, second] : [second, first];
    home.behave(sick);
    for (let count = 0; count < 12; count += 1) {
      const response = await post(gateway, path, body);
      expect(response.status).toBe(200);
      expect(await response.text()).toContain('there');
    }
    // One good call, then ten failures at most before the breaker opens.
    expect(home.received.length).toBeLessThanOrEqual(11);
    expect(other.received).toHaveLength(12);
    home.behave(GOOD);
    gateway.callAs({ ...CALLER, namespace: 'tenant-b', keyId: 'key-2' });
    const before = home.received.length;
    // Where a tenant's conversations go is its own.
    for (let session = 0; session < 20; session += 1) {
      const headers = { 'x-session-affinity': `session-${session}` };
      expect((await post(gateway, path, body, { headers })).status).toBe(200);
    }
    expect(home.received.length).toBeGreaterThan(before);
  });

  it.each([
    ['chat/completions', CHAT, NATIVE, 500],
    ['messages', CHAT, TRANSLATED, 500],
    ['responses', RESPONSES, TRANSLATED, 500],
  ] as [string, object, EngineOptions, number][])(
    'gets its real status when no other server is left: %s',
    async (path, body, options, status) => {
      const { gateway, engines } = await setup(options);
      engines[0]?.behave(stream(`data: ${DEAD}\n\n`));
      const response = await post(gateway, path, body);
      expect(response.status).toBe(status);
      expect(response.headers.get('content-type')).toBe('application/json');
      expect(await response.text()).toContain('EngineCore encountered an issue');
    },
  );

  it.each([
    ['{"error":{"object":"error","message":"bad schema","type":"BadRequestError","code":400}}', 400],
    ['{"object":"error","message":"bad schema","type":"BadRequestError","param":null,"code":400}', 400],
    ['{"error":{"message":"bad schema","http_status_code":422}}', 422],
    ['{"error":"bad schema","error_type":"validation"}', 400],
  ])('is refused once when the request is at fault: %s', async (error, status) => {
    for (const options of [NATIVE, TRANSLATED]) {
      const { gateway, engines } = await setup(options, options);
      for (const engine of engines) engine.behave(stream(`data: ${error}\n\n`));
      const response = await post(gateway, options === NATIVE ? 'chat/completions' : 'messages', CHAT);
      expect([response.status, await response.text()]).toEqual([status, expect.stringContaining('bad schema')]);
      expect(engines.flatMap(({ received }) => received)).toHaveLength(1);
    }
  });

  it('is told though it has not the form of an event', async () => {
    for (const options of [NATIVE, TRANSLATED]) {
      const { gateway, engines } = await setup(options);
      engines[0]?.behave(stream('{"error":{"message":"bad schema","code":400}}'));
      const response = await post(gateway, 'messages', CHAT);
      expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('bad schema')]);
    }
  });

  it('of TGI keeps the status that it names', async () => {
    const { gateway, engines } = await setup(TRANSLATED);
    engines[0]?.behave(stream(`data: ${TGI}\n\n`));
    expect((await post(gateway, 'chat/completions', CHAT)).status).toBe(424);
  });

  it('of an honest stream goes out as it comes, though nothing follows yet', async () => {
    for (const [path, options] of [
      ['chat/completions', NATIVE],
      ['messages', NATIVE],
      ['messages', TRANSLATED],
    ] as const) {
      const { gateway, engines } = await setup(options);
      engines[0]?.behave({ kind: 'stall', reply: { text: 'Hello there' }, events: 1 });
      const reader = (await post(gateway, path, CHAT)).body?.getReader();
      expect((await reader?.read())?.value?.length).toBeGreaterThan(0);
      await reader?.cancel();
    }
  });

  it('later in the stream is passed on in the shape of the dialect', async () => {
    const { gateway, engines } = await setup(NATIVE, NATIVE);
    for (const engine of engines) engine.behave({ kind: 'raw', contentType: 'text/event-stream', chunks: [ROLE] });
    const text = await (await post(gateway, 'chat/completions', CHAT)).text();
    expect(text).toContain('"role":"assistant"');
    expect(text).toContain('"error"');
    expect(engines.flatMap(({ received }) => received)).toHaveLength(1);
  });
});
