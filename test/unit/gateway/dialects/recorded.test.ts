/**
 * Streams recorded from llama.cpp's server (October 2026) with a forced tool call. Its responses stream lacks
 * `output_index`, `sequence_number` and most of the resource: OpenAI's client throws on it, the AI SDK loses the call.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PassThroughObserver, StreamTranslator } from '../../../../src/gateway/dialects/index.ts';
import { COLLECT } from './engines.ts';
import { contextOf, DIALECTS } from './support.ts';

describe.each(DIALECTS)('what llama.cpp streams in %s', (upstream) => {
  const bytes = readFileSync(join(import.meta.dirname, `recorded/llama-cpp.${upstream}.txt`));

  it.each(DIALECTS)('is a whole call for a strict %s client', (client) => {
    const request = { messages: [{ role: 'user', content: 'x' }], stream_options: { include_usage: true } };
    const machine = new StreamTranslator(upstream, client, contextOf(request));
    let out = '';
    for (let at = 0; at < bytes.length; at += 100) out += machine.push(bytes.subarray(at, at + 100));
    const got = COLLECT[client](out + machine.end());
    expect(got.calls.map(({ name, arguments: text }) => [name, JSON.parse(text)])).toEqual([
      ['get_weather', { city: 'Rome' }],
    ]);
    expect(got.stop).toBe({ chat: 'tool_calls', responses: 'completed', messages: 'tool_use' }[client]);
    expect(got.usage).toMatchObject({ input: 459, output: 90 });
  });

  it('is understood while it is forwarded', () => {
    const observer = new PassThroughObserver(upstream, { hideUsage: false });
    expect(observer.push(bytes)).toEqual(bytes);
    expect(observer.finished).toBe(true);
    expect(observer.usage).toMatchObject({ inputTokens: 459, outputTokens: 90 });
  });
});
