/** What is held of answers counts in the share of bytes of their tenant. */
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ClientWriter } from '../../../src/gateway/calls/client-writer.ts';
import { HeldAnswer } from '../../../src/gateway/calls/held-answer.ts';
import { StreamTranslator } from '../../../src/gateway/dialects/index.ts';
import { BodyShares } from '../../../src/gateway/limits/body-shares.ts';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import { responsesEvents } from '../../support/engine-answers.ts';
import { heapUsed } from '../../support/heap.ts';
import { CALLER, post, startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { type ScriptedEngine, startEngine } from '../../support/scripted-engine.ts';
import { chunk, sse } from './dialects/engines.ts';
import { contextOf } from './dialects/support.ts';

const MIB = 2 ** 20;
const FULL = /The answer was cut: the calls of this tenant together hold 1 MiB of request bodies and answers/;

describe('an answer in small pieces', () => {
  const used = (): number => heapUsed() + process.memoryUsage().arrayBuffers;

  it('of a byte each takes about its bytes', () => {
    const all = Buffer.alloc(MIB, 'x');
    const held = new HeldAnswer();
    const before = used();
    for (let at = 0; at < all.length; at += 1) held.add(all.subarray(at, at + 1));
    expect(used() - before).toBeLessThan(4 * MIB);
    expect(held.kept).toBeGreaterThanOrEqual(MIB);
    expect(held.whole().length).toBe(MIB);
  });

  it('takes no longer when it is too long', () => {
    const all = Buffer.alloc(32 * MIB, 'x');
    const held = new HeldAnswer();
    held.add(all);
    const start = process.cpuUsage();
    for (let at = 0; at < MIB; at += 1) held.add(all.subarray(at, at + 1));
    const { user, system } = process.cpuUsage(start);
    expect((user + system) / 1000).toBeLessThan(3000);
    expect(held.kept).toBeLessThan(MIB);
  });

  it('that is translated is counted with what its pieces take', () => {
    const events = Buffer.from(chunk({ content: 'xy' }).repeat(1000));
    const feed = (translator: StreamTranslator): StreamTranslator => {
      for (let turn = 0; turn < 200; turn += 1) translator.push(events);
      return translator;
    };
    const make = () => new StreamTranslator('chat', 'messages', contextOf({}));
    // Code that is compiled takes memory, too.
    feed(make());
    const before = heapUsed();
    const translator = feed(make());
    expect(heapUsed() - before).toBeLessThan(4 * MIB);
    expect(translator.kept).toBeGreaterThan(400_000);
    expect(translator.kept).toBeLessThan(2 * MIB);
  });
});

it.each([
  [
    'input of calls',
    'messages',
    (at: number) => ({
      type: 'tool_use',
      id: `${at}`,
      name: 'f',
      input: { a: Array.from({ length: 1000 }, () => []) },
    }),
  ],
  ['ids of items', 'responses', (at: number) => 'i'.repeat(4000) + String(at)],
] as const)('a translator counts what it keeps beside its texts: %s', (_what, from, make) => {
  const feed = (translator: StreamTranslator): StreamTranslator => {
    for (let at = 0; at < 1000; at += 1)
      translator.push(
        Buffer.from(
          sse(
            from === 'messages'
              ? { type: 'content_block_start', index: at, content_block: make(at) }
              : { type: 'response.output_text.delta', item_id: make(at), delta: 'x' },
          ),
        ),
      );
    return translator;
  };
  const translator = () => new StreamTranslator(from, 'chat', contextOf({}));
  feed(translator());
  const before = heapUsed();
  const fed = feed(translator());
  expect(heapUsed() - before).toBeLessThan(fed.kept + 2 * MIB);
  expect(fed.kept).toBeGreaterThan(3_000_000);
});

describe('a tenant beyond its share', () => {
  let engine: ScriptedEngine;
  let gateway: TestGateway;
  let open: () => void;
  let gate: Promise<void>;

  beforeEach(async () => {
    ({ promise: gate, resolve: open } = Promise.withResolvers<void>());
    engine = await startEngine({ engine: 'unknown', dialects: ['chat'] });
    const ceilings = () => ({ ...DEFAULT_CEILINGS, http: { ...DEFAULT_CEILINGS.http, bodyMib: 1 }, policies: [] });
    gateway = await startGateway(undefined, { ceilings });
    gateway.cluster.serve({ name: 'llm', ports: [engine.port] });
    await gateway.ready('tiny');
  });
  afterEach(async () => {
    open();
    await gateway.close();
    await engine.close();
  });

  const ask = (path: string, stream: boolean) => async () => {
    const body = { model: 'tiny', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 9, stream };
    const answer = await post(gateway, path, body);
    return { status: answer.status, text: await answer.text() };
  };
  const answers = (contentType: string, ...chunks: string[]): void =>
    engine.behave({ kind: 'raw', contentType, chunks, gate });

  it.each(['chat/completions', 'messages'])('has whole answers refused, and others have theirs: %s', async (path) => {
    const long = 'x'.repeat(700_000);
    const rest = '"},"finish_reason":"stop"}]}';
    answers('application/json', `{"id":"c","choices":[{"index":0,"message":{"content":"${long}`, rest);
    const call = ask(path, false);
    const calls = [call(), call()];
    const first = await Promise.race(calls);
    expect([first.status, FULL.test(first.text)]).toEqual([429, true]);
    gateway.callAs({ ...CALLER, namespace: 'tenant-b' });
    const other = call();
    await vi.waitFor(() => expect(engine.received).toHaveLength(3));
    open();
    expect((await Promise.all([...calls, other])).map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      200, 200, 429,
    ]);
    // Nothing stays behind.
    gateway.callAs(CALLER);
    expect((await call()).status).toBe(200);
  });

  it('has an answer refused that would take more when it is parsed, and passes on one that is not', async () => {
    const message = '"message":{"content":"hi"},"finish_reason":"stop"';
    answers('application/json', `{"id":"c","choices":[{"index":0,${message}}],"x":[${'[],'.repeat(50_000)}0]}`);
    for (const stream of [false, true]) {
      const { status, text } = await ask('messages', stream)();
      expect([status, FULL.test(text)]).toEqual([429, true]);
    }
    expect((await ask('chat/completions', false)()).status).toBe(200);
  });

  it('has a translated stream cut', async () => {
    answers('text/event-stream', chunk({ content: 'x'.repeat(10_000) }).repeat(200), '');
    const { status, text } = await ask('messages', true)();
    expect([status, text.startsWith('event: message_start'), FULL.test(text.slice(-1000))]).toEqual([200, true, true]);
  });

  it.each(['chat/completions', 'messages'])('has an event without an end refused: %s', async (path) => {
    answers('text/event-stream', `data: {"x":"${'x'.repeat(700_000)}`, '"}\n\n');
    const { status, text } = await ask(path, true)();
    expect([status, FULL.test(text)]).toEqual([429, true]);
  });
});

it('a response that is stored keeps its input where its tenant has no room to go on with it', async () => {
  const options = { engine: 'vllm', dialects: ['chat', 'responses'] } as const;
  const engines = await Promise.all([startEngine(options), startEngine(options)]);
  const ceilings = () => ({ ...DEFAULT_CEILINGS, http: { ...DEFAULT_CEILINGS.http, bodyMib: 2 }, policies: [] });
  const gateway = await startGateway(undefined, { ceilings });
  gateway.cluster.serve({ name: 'llm', ports: engines.map(({ port }) => port) });
  await gateway.ready('tiny', 2);
  const chunks = responsesEvents('tiny', { text: 'x'.repeat(200_000) });
  for (const engine of engines) engine.behave({ kind: 'raw', contentType: 'text/event-stream', chunks });
  const answer = await post(gateway, 'responses', { model: 'tiny', input: 'Hi', stream: true });
  const id = /"id":"(resp_[^"]+)"/.exec(await answer.text())?.[1];
  const items = await fetch(`${gateway.base}/v1/responses/${id}/input_items`);
  expect(await items.json()).toMatchObject({ data: [{ role: 'user', content: [{ text: 'Hi' }] }] });
  await gateway.close();
  await Promise.all(engines.map((engine) => engine.close()));
});

describe('a client that does not read', () => {
  class Unread extends EventEmitter {
    writableLength = 0;
    headersSent = false;
    writableEnded = false;
    writableFinished = false;
    req = { complete: true };
    said = '';
    writeHead(): this {
      this.headersSent = true;
      return this;
    }
    write(data: string | Uint8Array): boolean {
      this.writableLength += data.length;
      return false;
    }
    end(data: string | Uint8Array = ''): void {
      this.said += Buffer.from(data).toString();
      this.writableLength += data.length;
      this.writableEnded = true;
    }
    destroy(): void {
      this.emit('close');
    }
  }

  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const shares = new BodyShares(100 * MIB);
  const left = (): number => {
    const hold = shares.hold('a', MIB);
    let count = 0;
    while (hold.take(MIB / 16) === 'taken') count += 1;
    hold.release();
    return count;
  };
  const flow = { pause: vi.fn(), resume: vi.fn() };
  const begin = () => {
    const response = new Unread();
    const client = new ClientWriter(response as unknown as ServerResponse, 'chat', 'id');
    client.countUnread(shares.hold('a', MIB));
    return { response, client };
  };

  it('holds its part of the share, and has its call cut beyond it', () => {
    const [one, two] = [begin(), begin()];
    one.client.write('x'.repeat(MIB / 2), flow);
    expect(left()).toBe(8);
    two.client.write('x'.repeat(MIB / 4), flow);
    expect([left(), two.client.over]).toEqual([4, undefined]);
    const over = vi.fn();
    two.client.onOver(over);
    two.client.write('x'.repeat(MIB / 2), flow);
    expect(over).toHaveBeenCalledWith(expect.objectContaining({ status: 429, message: expect.stringMatching(FULL) }));
    two.client.sendError({ status: 429, message: 'The answer was cut.' });
    expect(two.response.said).toContain('The answer was cut.');
    vi.advanceTimersByTime(1000);
    expect(left()).toBe(8);
    one.response.writableLength = 0;
    one.response.emit('drain');
    expect(left()).toBe(16);
  });

  it('holds the end of its answer until it has taken it', () => {
    const [whole, stream] = [begin(), begin()];
    whole.client.sendWhole(Buffer.alloc(MIB / 2));
    stream.client.write('x', flow);
    stream.client.endStream(Buffer.alloc(MIB / 4));
    expect(left()).toBe(4);
    whole.response.emit('finish');
    expect(left()).toBe(12);
    stream.response.destroy();
    expect(left()).toBe(16);
  });
});
