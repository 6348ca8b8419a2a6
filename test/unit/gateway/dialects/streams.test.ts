import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StreamTranslator, type Dialect } from '../../../../src/gateway/dialects/index.ts';
import { callDelta, chunk, COLLECT, DONE, receive, ROLE, translate, USAGE_CHUNK } from './engines.ts';
import { contextOf, DIALECTS } from './support.ts';

interface Step {
  kind: 'reasoning' | 'text' | 'call';
  call: number;
  text: string;
}

const ARGUMENTS = ['{"city":"Paris"}', '{}', '{"a":[1,{"b":"ü€😀"}],"z":null}', '{"2":1,"1":2}'];

/** A random answer: what an engine would stream, and what must reach the client. */
const answers = fc
  .record({
    reasoning: fc.array(fc.string({ minLength: 1, unit: 'grapheme' }), { maxLength: 3 }),
    text: fc.array(fc.string({ minLength: 1, unit: 'grapheme' }), { maxLength: 4 }),
    calls: fc.array(fc.constantFrom(...ARGUMENTS), { maxLength: 3 }),
    cuts: fc.array(fc.nat(20), { minLength: 3, maxLength: 3 }),
    interleave: fc.boolean(),
  })
  .map(({ reasoning, text, calls, cuts, interleave }) => {
    const spoken = text.length > 0 && calls.length > 0 && text.join('').trim() === '' ? ['x', ...text] : text;
    const steps: Step[] = [
      ...reasoning.map((part): Step => ({ kind: 'reasoning', call: 0, text: part })),
      ...spoken.map((part): Step => ({ kind: 'text', call: 0, text: part })),
    ];
    const halves = calls.map((value, call) => {
      const cut = Math.min(cuts[call] ?? 0, value.length);
      return [value.slice(0, cut), value.slice(cut)].map((part): Step => ({ kind: 'call', call, text: part }));
    });
    const order = interleave ? [...halves.map(([a]) => a), ...halves.map(([, b]) => b)] : halves.flat();
    for (const step of order) if (step !== undefined) steps.push(step);
    return { steps, reasoning: reasoning.join(''), text: spoken.join(''), calls };
  });

function chatStream(steps: readonly Step[]): string {
  const begun = new Set<number>();
  const body = steps.map(({ kind, call, text }) => {
    if (kind === 'text') return chunk({ content: text });
    if (kind === 'reasoning') return chunk({ reasoning_content: text });
    const head = begun.has(call) ? {} : { id: `call_${call}`, name: `f${call}` };
    begun.add(call);
    return chunk(callDelta(call, { ...head, arguments: text }));
  });
  return [ROLE, ...body, chunk({}, begun.size > 0 ? 'tool_calls' : 'stop'), USAGE_CHUNK, DONE].join('');
}

/** Cuts bytes at random places. */
function* cutUp(text: string, sizes: readonly number[]): Generator<Uint8Array> {
  const bytes = Buffer.from(text);
  let at = 0;
  for (let turn = 0; at < bytes.length; turn++) {
    const size = Math.max(1, sizes[turn % sizes.length] ?? 1);
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

describe.each(DIALECTS)('a chat stream read by a strict %s client', (client) => {
  it('keeps reasoning, text, calls and usage, whatever the engine sends', () => {
    fc.assert(
      fc.property(answers, ({ steps, reasoning, text, calls }) => {
        const got = receive('chat', client, chatStream(steps));
        expect(got).toMatchObject({ reasoning, text, usage: { input: 100, output: 7, cached: 60 } });
        expect(got.calls.map(({ name, arguments: value }) => [name, value])).toEqual(
          calls.map((value, at) => [`f${at}`, value]),
        );
      }),
    );
  });

  it('gives the same events wherever the chunks are cut', () => {
    fc.assert(
      fc.property(answers, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), ({ steps }, sizes) => {
        const upstream = chatStream(steps);
        const machine = new StreamTranslator('chat', client, contextOf({ messages: [{ role: 'user', content: 'x' }] }));
        let out = '';
        for (const part of cutUp(upstream, sizes)) out += machine.push(part);
        out += machine.end();
        const whole = new StreamTranslator('chat', client, contextOf({ messages: [{ role: 'user', content: 'x' }] }));
        expect(out).toBe(whole.push(Buffer.from(upstream)) + whole.end());
      }),
    );
  });

  it.each(DIALECTS)('survives the way there and back through %s', (middle) => {
    fc.assert(
      fc.property(answers, ({ steps }) => {
        const upstream = chatStream(steps);
        const direct = receive('chat', client, upstream);
        const around = receive(middle, client, translate('chat', middle, upstream));
        expect({ ...around, order: [] }).toEqual({ ...direct, order: [] });
      }),
      { numRuns: 50 },
    );
  });

  it('ends exactly once, also when the engine forgets [DONE]', () => {
    const stream = ROLE + chunk({ content: 'hi' }) + chunk({}, 'stop');
    expect(receive('chat', client, stream).text).toBe('hi');
    expect(receive('chat', client, stream + DONE + DONE).text).toBe('hi');
  });

  it.each([
    ['stop', 'stop', 'completed', 'end_turn'],
    ['length', 'length', 'max_output_tokens', 'max_tokens'],
    ['content_filter', 'content_filter', 'content_filter', 'refusal'],
  ])('says why it stopped: %s', (finish, chat, responses, messages) => {
    const got = receive('chat', client, ROLE + chunk({ content: 'hi' }) + chunk({}, finish) + DONE);
    expect(got.stop).toBe({ chat, responses, messages }[client]);
  });

  it('turns a stream that was cut short into an error of the dialect, and sends nothing after it', () => {
    const machine = new StreamTranslator('chat', client, contextOf({ messages: [] }));
    const out = machine.push(Buffer.from(ROLE + chunk({ content: 'hal' }))) + machine.end();
    expect(out).toMatch(
      { chat: /"error":\{"message"/, responses: /response\.failed/, messages: /event: error/ }[client],
    );
    expect(out).not.toMatch(/message_stop|response\.completed|"finish_reason":"stop"/);
    expect(machine.finished).toBe(true);
    expect(machine.error?.status).toBe(502);
    expect(machine.estimatedOutputTokens).toBeGreaterThan(0);
    expect(machine.end() + machine.fail({ status: 500, message: 'again' })).toBe('');
  });

  it('passes an in-stream error on without addresses', () => {
    const machine = new StreamTranslator('chat', client, contextOf({ messages: [] }));
    const error = { error: { message: 'worker http://10.0.0.3:8000 died', type: 'InternalServerError', code: 500 } };
    const out = machine.push(Buffer.from(`${ROLE}data: ${JSON.stringify(error)}\n\n`));
    expect(out).toContain('[address] died');
    expect(machine.error?.status).toBe(500);
  });

  it('keeps one call when the client wants one and the engine ignores that', () => {
    const request: Record<Dialect, object> = {
      chat: { parallel_tool_calls: false },
      responses: { parallel_tool_calls: false },
      messages: { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    };
    const stream = [0, 1].map((at) => chunk(callDelta(at, { id: `c${at}`, name: 'f', arguments: '{}' })));
    const got = receive('chat', client, ROLE + stream.join('') + chunk({}, 'tool_calls') + DONE, request[client]);
    expect(got.calls).toEqual([{ id: 'c0', name: 'f', arguments: '{}' }]);
  });
});

describe('streams of other backends', () => {
  it('collects the items to store, with the ids that the client saw', () => {
    const machine = new StreamTranslator('chat', 'responses', contextOf({ input: 'x' }));
    const out = machine.push(
      Buffer.from(
        ROLE +
          chunk({ content: 'a' }) +
          chunk(callDelta(0, { id: 'c', name: 'f', arguments: '{}' })) +
          chunk({}, 'stop') +
          DONE,
      ),
    );
    expect(machine.items).toMatchObject([
      { kind: 'text', text: 'a' },
      { kind: 'call', callId: 'c' },
    ]);
    for (const item of machine.items) expect(out).toContain(`"id":"${item.id ?? ''}"`);
    expect(COLLECT.responses(out).text).toBe('a');
  });
});
