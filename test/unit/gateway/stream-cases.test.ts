/** The streams of cases/ through the gateway: what a client of each dialect gets over HTTP, passed on and translated. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Dialect } from '../../../src/gateway/dialects/index.ts';
import { gatewayTo, post, type TestGateway } from '../../support/model-gateway.ts';
import type { ScriptedEngine } from '../../support/scripted-engine.ts';
import { ENGINE_STREAMS } from './dialects/cases/engine-streams.ts';
import { MESSAGES_STREAMS } from './dialects/cases/messages-streams.ts';
import { STREAMS } from './dialects/cases/streams.ts';
import type { StreamCase } from './dialects/cases/stream-case.ts';
import { COLLECT } from './dialects/engines.ts';
import { DIALECTS } from './dialects/support.ts';

const ALL = [...STREAMS, ...ENGINE_STREAMS, ...MESSAGES_STREAMS];
const MESSAGES = [{ role: 'user', content: 'Say hello' }];
const CALLS = {
  chat: ['chat/completions', { messages: MESSAGES, stream_options: { include_usage: true } }],
  responses: ['responses', { input: 'Say hello', store: false }],
  messages: ['messages', { messages: MESSAGES, max_tokens: 50 }],
} as const;

/** An error in a stream of any dialect, or a failed response. */
const FAILED = /"error":\{|event: error/;

/** The bytes in two writes, cut where it hurts: inside an event. */
function raw({ bytes }: StreamCase) {
  const middle = Math.floor(bytes.length / 2);
  const chunks = [bytes.slice(0, middle), bytes.slice(middle)];
  return { kind: 'raw', contentType: 'text/event-stream', chunks } as const;
}

describe.each(DIALECTS)('an engine of %s', (from) => {
  const own = ALL.filter((one) => one.from === from);
  const call = (gateway: TestGateway, to: Dialect): Promise<Response> => {
    const [path, body] = CALLS[to];
    return post(gateway, path, { model: 'tiny', stream: true, ...body });
  };
  let gateway: TestGateway;
  let engine: ScriptedEngine;
  let close: () => Promise<void>;

  beforeAll(async () => {
    const started = await gatewayTo({ engine: 'unknown', dialects: [from] });
    ({ gateway, close } = started);
    engine = started.engines[0] as ScriptedEngine;
  });
  afterAll(() => close());

  it.each(own.filter(({ error }) => error === undefined))('$source', async (stream) => {
    for (const to of DIALECTS) {
      engine.behave(raw(stream));
      const response = await call(gateway, to);
      const text = await response.text();
      expect([to, response.status]).toEqual([to, 200]);
      expect(response.headers.get('x-berth-route')).toMatch(to === from ? /^native/ : /^translated/);
      if (to === from) {
        expect(text).toBe(stream.bytes);
        continue;
      }
      const { text: said, reasoning, calls } = COLLECT[to](text);
      expect([said, reasoning]).toEqual([stream.text ?? '', stream.reasoning ?? '']);
      expect(calls).toMatchObject(stream.calls ?? []);
    }
  });

  it.each(own.filter(({ error }) => error !== undefined))('fails: $source', async (stream) => {
    // A server that failed gets fewer calls, so each call has its own.
    for (const to of DIALECTS) {
      const alone = await gatewayTo({ engine: 'unknown', dialects: [from] });
      alone.engines[0]?.behave(raw(stream));
      const response = await call(alone.gateway, to);
      const text = await response.text();
      expect([to, response.status >= 400 || FAILED.test(text)]).toEqual([to, true]);
      await alone.close();
    }
  });
});
