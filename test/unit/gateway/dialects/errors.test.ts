import { describe, expect, it } from 'vitest';
import { errorBody, readUpstreamError, streamError } from '../../../../src/gateway/dialects/index.ts';
import { at } from './support.ts';

describe('errors of engines', () => {
  it.each([
    [
      'vLLM',
      404,
      '{"error":{"message":"The model `x` does not exist.","type":"NotFoundError","param":null,"code":404}}',
      /does not exist/,
    ],
    ['old vLLM', 400, '{"object":"error","message":"too long","type":"BadRequestError","code":400}', /^too long$/],
    ['Ollama', 404, '{"error":"model \\"x\\" not found"}', /not found/],
    ['TGI', 422, '{"error":"Input validation error: too big","error_type":"validation"}', /too big/],
    [
      'FastAPI',
      422,
      '{"detail":[{"loc":["body","messages"],"msg":"Field required"}]}',
      /^body.messages: Field required$/,
    ],
    [
      'Google',
      400,
      '[{\n  "error": {"code": 400, "message": "No such field", "status": "INVALID_ARGUMENT"}\n}]',
      /^No such/,
    ],
    ['a proxy', 502, '<html><body>Bad gateway</body></html>', /no explanation/],
  ])('is understood: %s', (_name, status, body, message) => {
    const error = readUpstreamError(status, body);
    expect(error.status).toBe(status);
    expect(error.message).toMatch(message);
  });

  it('is an overflow also in a list of one, by which agents compact', () => {
    const message = 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).';
    const body = JSON.stringify([{ error: { code: 400, message, status: 'INVALID_ARGUMENT' } }], undefined, 2);
    expect(readUpstreamError(400, body)).toMatchObject({
      code: 'context_length_exceeded',
      overflow: { prompt: 1_200_000, limit: 1_048_576 },
    });
  });

  it.each([
    'connect ECONNREFUSED 10.42.0.17:8000',
    'Cannot reach http://vllm-0.models.svc.cluster.local:8000/v1/chat',
    'vllm-7d9f.default.svc failed',
    'dial tcp [fd00::12]:8080: refused',
    'worker gpu-node-3:29500 died',
    'File "/usr/local/lib/python3.12/site-packages/vllm/x.py"',
    'no route to fe80::1',
    'connect to 2001:db8::5 failed',
    'connect to ::ffff:10.42.0.17, port 8000',
    'dial tcp [fe80::1%eth0]:8080: i/o timeout',
    "Connect call failed ('10.42.0.17', 8000)",
    'Cannot connect to host vllm-0.vllm.team-a:8000 ssl:default [Name or service not known]',
    "HTTPConnectionPool(host='vllm-engine', port=8000): Max retries exceeded",
    'Could not resolve host: vllm-engine',
    'getaddrinfo ENOTFOUND vllm-engine',
    'lost vllm-0.vllm.team-a',
    'vllm-7d9f.models.svc.cluster.local. is away',
    'failed on node gpu-node-3, restarting',
    'proxy.vllm-engine.example.com is away',
    'user@vllm-0.models.svc/metrics',
  ])('never shows the inside: %s', (text) => {
    const { message } = readUpstreamError(500, JSON.stringify({ error: { message: text } }));
    expect(message).not.toMatch(/10\.42|vllm-|svc|fd00|fe80|db8|gpu-node|site-packages|29500/);
    expect(message).toMatch(/\[(address|path)\]/);
  });

  it.each([
    'The model `Qwen/Qwen2.5-7B-Instruct` does not exist, use gpt-4.1-mini or llama-3.1-8b.q4.gguf.',
    'messages[0].content.1: Field required; body.response_format.json_schema: expected an object',
    'max_tokens must be at most 4096, got 8192 (ratio 1:2, 10:42 h)',
    'host is out of memory: torch.cuda.OutOfMemoryError, tried to allocate 2.50 GiB',
    'CUDA error: device-side assert triggered; vllm.engine died',
  ])('shows what helps: %s', (text) => {
    expect(readUpstreamError(500, JSON.stringify({ error: { message: text } })).message).toBe(text);
  });

  it('cuts a long message, and shows no part of an address at the cut', () => {
    const { message } = readUpstreamError(500, JSON.stringify({ error: `${'word '.repeat(199)}10.42.0.17:8000` }));
    expect(message).toBe(`${'word '.repeat(199)}…`);
    const repeated = readUpstreamError(500, JSON.stringify({ error: 'x'.repeat(5000) }));
    expect(repeated.message).toBe(`${'x'.repeat(1000)}…`);
  });

  it('has a code and a parameter only where these look like one, however long they are', () => {
    const codeOf = (code: unknown, param: unknown) => {
      const read = readUpstreamError(400, JSON.stringify({ error: { message: 'm', code, param } }));
      return [read.code, read.param];
    };
    expect(codeOf('invalid_value', 'messages[0].content.1')).toEqual(['invalid_value', 'messages[0].content.1']);
    expect(codeOf('ECONNREFUSED', 'tools.0.function.name')).toEqual(['ECONNREFUSED', 'tools.0.function.name']);
    for (const inner of ['10.42.0.17:8000', 'vllm-0.models.svc.cluster.local', 'http://vllm:8000/v1', 'x'.repeat(1e6)])
      expect(codeOf(inner, inner)).toEqual([undefined, undefined]);
  });

  it('makes a refusal of the gateway the operator’s problem', () => {
    expect(readUpstreamError(401, '{"error":{"message":"Incorrect API key provided: sk-abc"}}')).toMatchObject({
      status: 502,
      message: expect.not.stringContaining('sk-abc') as string,
    });
  });
});

describe('errors for clients', () => {
  it.each([
    [400, 'invalid_request_error'],
    [404, 'not_found_error'],
    [413, 'request_too_large'],
    [429, 'rate_limit_error'],
    [500, 'api_error'],
    [502, 'api_error'],
    [503, 'overloaded_error'],
    [504, 'timeout_error'],
  ])('messages, status %i', (status, type) => {
    const error = { status, message: 'm', type: 'NotFoundError' };
    const { body, headers } = errorBody('messages', error, 'r1');
    expect(body).toEqual({ type: 'error', error: { type, message: 'm' }, request_id: 'r1' });
    expect(headers['request-id']).toBe('r1');
  });

  it.each([
    [404, 'model_not_found'],
    [429, 'rate_limit_exceeded'],
    [500, null],
  ])('chat and responses, status %i', (status, code) => {
    for (const dialect of ['chat', 'responses'] as const) {
      const { body } = errorBody(dialect, { status, message: 'm' }, 'r1');
      expect(at(body, 'error')).toEqual({ message: 'm', type: expect.any(String) as string, param: null, code });
    }
  });

  it('has a stream form per dialect', () => {
    const error = { status: 503, message: 'gone' };
    expect(streamError('chat', error)).toMatch(/^data: \{"error":\{"message":"gone".*\n\ndata: \[DONE\]\n\n$/);
    expect(streamError('messages', error)).toBe(
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"gone"}}\n\n',
    );
    expect(streamError('responses', error, 7)).toContain('"sequence_number":7');
  });
});
