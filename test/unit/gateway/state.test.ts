import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import { observeBody } from '../../../src/gateway/dialects/index.ts';
import { MemoryStore } from '../../../src/gateway/state/response-store.ts';
import { CALLER, eventually, gatewayTo, post, startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { startEngine, type EngineOptions, type ScriptedEngine } from '../../support/scripted-engine.ts';

interface Answer {
  id: string;
  status: string;
  output: { id?: string; type: string }[];
}

const ENGINES: [string, EngineOptions][] = [
  ['an engine with a responses route', { engine: 'vllm', version: '0.24.0', dialects: ['chat', 'responses'] }],
  ['an engine that speaks chat alone', { engine: 'tgi' }],
];

describe.each(ENGINES)('stored responses over %s', (_name, options) => {
  let gateway: TestGateway;
  let engine: ScriptedEngine;
  let close: () => Promise<void>;

  beforeAll(async () => {
    const started = await gatewayTo(options);
    gateway = started.gateway;
    engine = started.engines[0] as ScriptedEngine;
    close = started.close;
  });
  afterAll(() => close());
  beforeEach(() => {
    engine.received.length = 0;
  });

  async function create(body: object): Promise<Answer> {
    const response = await post(gateway, 'responses', { model: 'tiny', ...body });
    expect(response.status).toBe(200);
    return (await response.json()) as Answer;
  }

  function get(id: string): Promise<Response> {
    return fetch(`${gateway.base}/v1/responses/${id}`);
  }

  it('list their own input, page by page', async () => {
    const first = await create({ input: 'before' });
    const input = ['a', 'b', 'c'].map((text) => ({ role: 'user', content: [{ type: 'input_text', text }] }));
    const { id } = await create({ input, previous_response_id: first.id });
    const page = async (query: string) => {
      const response = await fetch(`${gateway.base}/v1/responses/${id}/input_items${query}`);
      return (await response.json()) as { data: { id: string; content: { text: string }[] }[]; has_more: boolean };
    };
    const texts = ({ data }: Awaited<ReturnType<typeof page>>) => data.map(({ content }) => content[0]?.text);
    expect(texts(await page(''))).toEqual(['c', 'b', 'a']);
    const two = await page('?order=asc&limit=2');
    expect([texts(two), two.has_more]).toEqual([['a', 'b'], true]);
    const rest = await page(`?order=asc&after=${two.data[1]?.id}`);
    expect([texts(rest), rest.has_more]).toEqual([['c'], false]);
    for (const query of ['?limit=0', '?limit=x', '?order=up', '?after=no'])
      expect(await page(query)).toMatchObject({ error: { code: 'invalid_value' } });
    for (const path of [id, `${id}/input_items`]) {
      const url = `${gateway.base}/v1/responses/${path}`;
      const etag = (await fetch(url)).headers.get('etag') ?? 'none';
      expect((await fetch(url, { headers: { 'if-none-match': etag } })).status).toBe(304);
    }
    const unknown = await fetch(`${gateway.base}/v1/responses/resp_no/input_items`);
    expect(unknown.status).toBe(404);
  });

  it('cannot be cancelled, because none is made in the background', async () => {
    const { id } = await create({ input: 'x' });
    const refused = await post(gateway, `responses/${id}/cancel`, {});
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('synchronous response')]);
    expect((await post(gateway, 'responses/resp_no/cancel', {})).status).toBe(404);
  });

  it('count as input of the next, before it is sent', async () => {
    const count = async (body: object) => {
      const answer = await post(gateway, 'responses/input_tokens', { model: 'tiny', ...body });
      return (await answer.json()) as { object: string; input_tokens: number };
    };
    const first = await create({ input: 'word '.repeat(100) });
    const alone = await count({ input: 'next' });
    expect(alone.object).toBe('response.input_tokens');
    const both = await count({ input: 'next', previous_response_id: first.id });
    expect(both.input_tokens).toBeGreaterThan(alone.input_tokens + 90);
    expect(await count({ input: 'x', previous_response_id: 'resp_no' })).toMatchObject({
      error: { code: 'previous_response_not_found' },
    });
    expect(engine.received).toHaveLength(1);
  });

  it('continue a conversation by id, turn after turn', async () => {
    const first = await create({ input: 'My name is Ada.' });
    const second = await create({ input: 'And I like ships.', previous_response_id: first.id });
    await create({ input: 'What is my name?', previous_response_id: second.id });
    const sent = JSON.stringify(engine.received[2]?.body);
    const order = ['My name is Ada.', 'Hello there', 'And I like ships.', 'Hello there', 'What is my name?'];
    let at = 0;
    for (const text of order) {
      at = sent.indexOf(text, at);
      expect(at, text).toBeGreaterThan(-1);
      at += text.length;
    }
    expect(engine.received[2]?.body).not.toHaveProperty('previous_response_id');
  });

  it('keep what was streamed', async () => {
    const response = await post(gateway, 'responses', { model: 'tiny', input: 'Stream it', stream: true });
    const text = await response.text();
    const id = /"id":"(resp_[^"]+)"/.exec(text)?.[1] ?? '';
    const stored = (await (await get(id)).json()) as Answer;
    expect(stored).toMatchObject({ id, object: 'response', status: 'completed' });
    expect(JSON.stringify(stored.output)).toContain('Hello there');
    await create({ input: 'Go on', previous_response_id: id });
    expect(JSON.stringify(engine.received[1]?.body)).toContain('Stream it');
  });

  it('keep what was streamed with line separators in it', async () => {
    const body = { model: 'tiny', input: 'Stream it', instructions: 'a\u2028b\u2029c', stream: true };
    engine.behave({ kind: 'answer', reply: { text: 'Hello\u2028there' } });
    const text = await (await post(gateway, 'responses', body)).text();
    engine.behave({ kind: 'answer', reply: { text: 'Hello there' } });
    expect(text).toContain('event: response.completed');
    const id = /"id":"(resp_[^"]+)"/.exec(text)?.[1] ?? '';
    expect(JSON.stringify(await (await get(id)).json())).toContain('Hello\u2028there');
  });

  it('are read and deleted only by the key that made them', async () => {
    const { id } = await create({ input: 'Keep it' });
    expect(await (await get(id)).json()).toMatchObject({ id, status: 'completed' });
    gateway.callAs({ ...CALLER, keyId: 'another' });
    expect((await get(id)).status).toBe(404);
    const stolen = await post(gateway, 'responses', { model: 'tiny', input: 'x', previous_response_id: id });
    expect(stolen.status).toBe(400);
    gateway.callAs(CALLER);
    const deleted = await fetch(`${gateway.base}/v1/responses/${id}`, { method: 'DELETE' });
    expect(await deleted.json()).toEqual({ id, object: 'response', deleted: true });
    expect((await get(id)).status).toBe(404);
  });

  it('are not kept when the client says so', async () => {
    const { id } = await create({ input: 'Forget it', store: false });
    expect((await get(id)).status).toBe(404);
    const response = await post(gateway, 'responses', { model: 'tiny', input: 'x', previous_response_id: id });
    expect(await response.json()).toMatchObject({
      error: { code: 'previous_response_not_found', param: 'previous_response_id' },
    });
  });
});

describe('what only a server of responses reads', () => {
  const PDF = { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' };
  const input = [{ role: 'user', content: [PDF, { type: 'input_text', text: 'Sum it up' }] }];
  const later = [{ type: 'item_of_tomorrow', ratio: 1 }];
  let vendor: Awaited<ReturnType<typeof gatewayTo>>;

  beforeAll(async () => {
    vendor = await gatewayTo({ engine: 'unknown', dialects: ['chat', 'responses'] });
  });
  afterAll(() => vendor.close());

  async function create(body: object): Promise<Answer> {
    const response = await post(vendor.gateway, 'responses', { model: 'tiny', ...body });
    expect(response.status).toBe(200);
    return (await response.json()) as Answer;
  }

  const received = (): unknown[] => {
    const body = vendor.engines[0]?.received.at(-1)?.body as { input?: unknown[] } | undefined;
    return body?.input ?? [];
  };

  it('is stored with the answer, and continues the conversation there as it was', async () => {
    const first = await create({ input });
    const second = await create({ input: later, previous_response_id: first.id });
    expect(received()).toEqual([...input, expect.objectContaining({ role: 'assistant' }), ...later]);
    await create({ input: 'And?', previous_response_id: second.id });
    expect(received()).toHaveLength(5);
    expect(received()[0]).toEqual(input[0]);
    const page = await fetch(`${vendor.gateway.base}/v1/responses/${second.id}/input_items`);
    expect(await page.json()).toMatchObject({ data: later });
  });

  it('stays as it is beside a reference to a stored item', async () => {
    const { output } = await create({ input: 'Hello' });
    const id = output[0]?.id;
    await create({ input: [{ role: 'user', content: 'Hello' }, { type: 'item_reference', id }, ...input, ...later] });
    expect(received()).toEqual([
      { role: 'user', content: 'Hello' },
      expect.objectContaining({ id, role: 'assistant' }),
      ...input,
      ...later,
    ]);
  });

  it('is stored of an answer, too', () => {
    const output = [{ type: 'item_of_tomorrow', id: 'i' }, { type: 'message', content: [] }, { text: 'of no type' }];
    const { items } = observeBody('responses', Buffer.from(JSON.stringify({ id: 'r', output })));
    expect(items).toEqual([{ kind: 'given', id: 'i', item: output[0] }]);
  });

  it('is refused by its name where a conversation goes on at another server', async () => {
    const { id } = await create({ input });
    const engine = await startEngine({ engine: 'tgi', models: ['other'] });
    vendor.gateway.cluster.serve({ name: 'other-server', ports: [engine.port] });
    await vendor.gateway.ready('other');
    const refused = await post(vendor.gateway, 'responses', { model: 'other', input: 'x', previous_response_id: id });
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('application/pdf')]);
    await engine.close();
  });
});

describe.each([true, false])('an answer that is to be stored, stream %s', (stream) => {
  it('ends for the client only when it is stored: the next call may continue it at once', async () => {
    const stored = Promise.withResolvers<void>();
    const memory = new MemoryStore(systemClock());
    const put = vi.spyOn(memory, 'put').mockReturnValue(stored.promise);
    const engine = await startEngine({ engine: 'tgi' });
    const gateway = await startGateway(undefined, { store: memory });
    gateway.cluster.serve({ name: 'tiny-server', ports: [engine.port] });
    await gateway.ready('tiny');
    const ended = vi.fn();
    const text = post(gateway, 'responses', { model: 'tiny', input: 'Hello', stream })
      .then((response) => response.text())
      .finally(ended);
    await eventually(() => expect(put).toHaveBeenCalledTimes(1));
    // When this is answered, the client has got all that was written to it before.
    await (await fetch(`${gateway.base}/v1/models`)).text();
    expect(ended).not.toHaveBeenCalled();
    stored.resolve();
    expect(await text).toContain('"status":"completed"');
    await gateway.close();
    await engine.close();
  });
});

describe('count_tokens', () => {
  const body = { model: 'tiny', messages: [{ role: 'user', content: 'How many tokens is this?' }] };

  it('asks the engine when it can count, and estimates otherwise', async () => {
    const counting = await gatewayTo({ engine: 'llama.cpp', dialects: ['chat', 'messages'], countTokens: true });
    expect(await (await post(counting.gateway, 'messages/count_tokens', body)).json()).toEqual({ input_tokens: 42 });
    await counting.close();
    const plain = await gatewayTo({ engine: 'tgi' });
    const { input_tokens: tokens } = (await (await post(plain.gateway, 'messages/count_tokens', body)).json()) as {
      input_tokens: number;
    };
    expect(tokens).toBeGreaterThan(3);
    expect(tokens).toBeLessThan(30);
    expect(plain.engines[0]?.received).toEqual([]);
    const unknown = await post(plain.gateway, 'messages/count_tokens', { ...body, model: 'gpt-9' });
    expect(unknown.status).toBe(404);
    expect((await post(plain.gateway, 'messages/count_tokens', { model: 'tiny' })).status).toBe(400);
    await plain.close();
  });
});
