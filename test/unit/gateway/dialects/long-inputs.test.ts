/** Long inputs take linear time: one call must not delay the others. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bodyToGoOn,
  type Dialect,
  DialectError,
  forOutside,
  inspectRequest,
  parseInput,
  StreamTranslator,
  translateRequest,
} from '../../../../src/gateway/dialects/index.ts';
import { ArgumentsScan } from '../../../../src/gateway/dialects/stream/block.ts';
import { cpuTime } from '../../../support/cpu-time.ts';
import { callDelta, chunk } from './engines.ts';
import { at, contextOf, VLLM } from './support.ts';

/** Objects, arrays and commas that a body may have. */
const PIECES = 500_000;

/** As many as a body may have of an element with so many pieces of its own, and one between two. */
function many(pieces: number, element: (index: number) => object | string): unknown[] {
  return Array.from({ length: Math.floor(PIECES / (pieces + 1)) }, (_, index) => element(index));
}

const USER = { role: 'user', content: 'go' };
const CALL = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
const fn = (index: number) => ({ type: 'function', name: `f${index}` });
const blocks = (content: unknown) => ({ max_tokens: 9, messages: [{ role: 'user', content }] });
const answer = (content: unknown) => ({ max_tokens: 9, messages: [USER, { role: 'assistant', content }] });
const half = (list: unknown[]): unknown[] => list.slice(0, list.length / 2);

/** A body with as much as it may have of one thing, or of two that are compared with each other. */
const LONGEST: readonly [Dialect, what: string, body: () => object][] = [
  [
    'messages',
    'messages',
    () => ({ max_tokens: 9, messages: many(2, (i) => ({ role: i % 2 ? 'assistant' : 'user', content: 'a' })) }),
  ],
  ['messages', 'texts', () => blocks(many(2, () => ({ type: 'text', text: 'a' })))],
  ['messages', 'results of one call', () => blocks(many(2, () => ({ type: 'tool_result', tool_use_id: 'c' })))],
  [
    'messages',
    'texts of a search',
    () =>
      blocks([
        { type: 'search_result', source: 's', title: 't', content: many(2, () => ({ type: 'text', text: 'a' })) },
      ]),
  ],
  ['messages', 'calls', () => answer(many(5, (i) => ({ type: 'tool_use', id: `${i}`, name: 'f', input: {} })))],
  [
    'messages',
    'calls of a vendor',
    () => answer(many(5, (i) => ({ type: 'server_tool_use', id: `${i}`, name: 'f', input: {} }))),
  ],
  ['messages', 'texts of a system', () => ({ ...blocks('a'), system: many(2, () => ({ type: 'text', text: 'a' })) })],
  ['messages', 'tools', () => ({ ...blocks('a'), tools: many(3, (i) => ({ name: `f${i}`, input_schema: {} })) })],
  [
    'messages',
    'tools of a client',
    () => ({ ...blocks('a'), tools: many(2, (i) => ({ type: 'memory_1', name: `f${i}` })) }),
  ],
  ['messages', 'searches', () => ({ ...blocks('a'), tools: many(1, () => ({ type: 'web_search_1' })) })],
  ['chat', 'messages', () => ({ messages: many(2, () => USER) })],
  [
    'chat',
    'results of one call',
    () => ({
      messages: [
        USER,
        { role: 'assistant', tool_calls: [{ id: 'c', function: { name: 'f' } }] },
        ...many(3, () => ({ role: 'tool', tool_call_id: 'c', content: '' })),
      ],
    }),
  ],
  [
    'chat',
    'calls',
    () => ({
      messages: [USER, { role: 'assistant', tool_calls: many(4, (i) => ({ id: `${i}`, function: { name: 'f' } })) }],
    }),
  ],
  ['chat', 'texts', () => ({ messages: [{ role: 'user', content: many(2, () => ({ type: 'text', text: 'a' })) }] })],
  ['chat', 'tools', () => ({ messages: [USER], tools: many(4, (i) => ({ type: 'function', function: fn(i) })) })],
  ['responses', 'messages', () => ({ input: many(2, () => USER) })],
  [
    'responses',
    'results of one call',
    () => ({ input: [USER, CALL, ...many(3, () => ({ type: 'function_call_output', call_id: 'c', output: '' }))] }),
  ],
  [
    'responses',
    'images of a result',
    () => ({
      input: [
        USER,
        CALL,
        {
          type: 'function_call_output',
          call_id: 'c',
          output: many(2, () => ({ type: 'input_image', image_url: 'data:,' })),
        },
      ],
    }),
  ],
  ['responses', 'calls', () => ({ input: [USER, ...many(4, (i) => ({ ...CALL, call_id: `${i}` }))] })],
  [
    'responses',
    'reasoning',
    () => ({ input: [USER, ...many(4, () => ({ type: 'reasoning', id: 'r', summary: [] }))] }),
  ],
  ['responses', 'references', () => ({ input: many(2, (i) => ({ type: 'item_reference', id: `${i}` })) })],
  ['responses', 'tools', () => ({ input: 'a', tools: many(2, fn) })],
  ['responses', 'searches', () => ({ input: 'a', tools: [...many(1, () => ({ type: 'web_search' })), fn(0)] })],
  [
    'responses',
    'tools, and items that add some',
    () => ({
      tools: half(many(2, fn)),
      input: [USER, ...half(many(3, () => ({ type: 'additional_tools', tools: [] })))],
    }),
  ],
  [
    'responses',
    'tools, and those that are allowed',
    () => ({
      input: 'a',
      tools: half(many(2, fn)),
      tool_choice: { type: 'allowed_tools', tools: half(many(2, () => ({ type: 'function', name: 'x' }))) },
    }),
  ],
  [
    'responses',
    'tools in a namespace with a long name',
    () => ({
      input: 'a',
      tools: [{ type: 'namespace', name: 'n'.repeat(2_000_000), tools: many(2, fn).slice(0, 4000) }],
    }),
  ],
  [
    'responses',
    'tools that were found in a namespace with a long name',
    () => ({
      input: [
        USER,
        {
          type: 'tool_search_output',
          call_id: 'c',
          tools: [{ type: 'namespace', name: 'n'.repeat(2_000_000), tools: many(2, fn).slice(0, 4000) }],
        },
      ],
    }),
  ],
];
const DIALECTS = ['chat', 'responses', 'messages'] as const;
/** A text of a few megabytes may become several of them, and not hundreds. */
const MOST_CHARACTERS = 128 * 2 ** 20;

describe('requests', () => {
  it.each(LONGEST)(
    'of %s with as many %s as may be are read and written in time, or refused',
    async (from, _what, make) => {
      const body = { model: 'm', ...make() };
      const tried = (work: () => unknown): void => {
        try {
          expect(JSON.stringify(work()).length).toBeLessThan(MOST_CHARACTERS);
        } catch (error) {
          if (!(error instanceof DialectError)) throw error;
          expect(error.status).toBeLessThan(500);
        }
      };
      for (const work of [
        () => inspectRequest(from, body),
        () => forOutside(body, from),
        ...DIALECTS.map((to) => () => translateRequest(from, to, body, { model: 'm', quirks: VLLM })),
      ])
        expect(await cpuTime(() => tried(work))).toBeLessThan(3000);
    },
  );

  it('of many system messages after one of the user are folded, the body left as it was', async () => {
    const first = { role: 'user', content: [{ type: 'text', text: 'go' }] };
    const messages = [first, ...Array.from({ length: 100_000 }, () => ({ role: 'system', content: '' }))];
    const asked = { model: 'm', max_tokens: 10, messages };
    let body = {};
    const work = () => (body = translateRequest('messages', 'chat', asked, { model: 'm', quirks: VLLM }));
    expect(await cpuTime(work)).toBeLessThan(3000);
    expect(at(body, 'messages.0.content.length')).toBe(100_001);
    expect(first.content).toHaveLength(1);
  });

  it('refer to so many stored items at most, which are asked for at once', () => {
    const input = Array.from({ length: 10_001 }, (_, index) => ({ type: 'item_reference', id: `${index}` }));
    expect(() => inspectRequest('responses', { model: 'm', input })).toThrow(expect.objectContaining({ status: 400 }));
    expect(inspectRequest('responses', { model: 'm', input: input.slice(1) }).itemReferences).toHaveLength(10_000);
  });

  it('refer to each stored item once, which bounds them by what is stored', () => {
    const references = new Map(['a', 'b'].map((id) => [id, [{ kind: 'text' as const, text: 'x', id }]]));
    const input = ['a', 'b', 'a'].map((id) => ({ type: 'item_reference', id }));
    expect(parseInput(input.slice(0, 2), references)).toHaveLength(2);
    expect(() => parseInput(input, references)).toThrow(expect.objectContaining({ status: 400, param: 'input[2].id' }));
  });
});

describe('streams', () => {
  const FRAGMENTS = 100_000;
  const named = (fragment: object): string =>
    chunk(callDelta(0, { id: 'a', name: 'f' })) + chunk(callDelta(0, fragment)).repeat(FRAGMENTS);

  it('read the fragments of a name once, and end where it is longer than any that is meant', async () => {
    const machine = setup();
    let out = '';
    expect(await cpuTime(() => (out = machine.push(Buffer.from(named({ name: 'x' })))))).toBeLessThan(3000);
    expect(out).toContain('sent a tool call whose name is longer than 1024 characters');
    expect(machine).toMatchObject({ finished: true, error: { status: 502 } });
    const whole = setup();
    whole.push(Buffer.from(chunk(callDelta(0, { id: 'a', name: 'x'.repeat(1025) }))));
    expect(whole.error).toMatchObject({ status: 502 });
    const fits = setup();
    fits.push(
      Buffer.from(chunk(callDelta(0, { id: 'a', name: 'x' })) + chunk(callDelta(0, { name: 'y' })).repeat(1023)),
    );
    fits.push(Buffer.from(chunk(callDelta(0, { arguments: '{}' }))));
    expect(fits.items).toMatchObject([{ name: `x${'y'.repeat(1023)}` }]);
  });

  it('keep the first id of a call, whatever fragments follow', async () => {
    const machine = setup();
    expect(await cpuTime(() => machine.push(Buffer.from(named({ id: 'b' }))))).toBeLessThan(3000);
    machine.push(Buffer.from(chunk(callDelta(0, { arguments: '{}' }))));
    expect(machine.items).toMatchObject([{ callId: 'a', name: 'f' }]);
  });

  const LONG = 2_000_000;
  const setup = () => new StreamTranslator('chat', 'messages', contextOf({ messages: [] }));

  it.each([
    ['that look like an end', `{"a":"${'x'.repeat(LONG)}`, '}'],
    ['after an end that is no JSON', `{"a":"${'x'.repeat(LONG)}" bad}`, ' '],
  ])('of parallel calls read long arguments once for all fragments %s', async (_name, long, fragment) => {
    const machine = setup();
    const first = chunk(callDelta(0, { id: 'a', name: 'f', arguments: long }));
    machine.push(Buffer.from(first + chunk(callDelta(1, { id: 'b', name: 'g', arguments: '{}' }))));
    const more = Buffer.from(chunk(callDelta(0, { arguments: fragment })).repeat(4000));
    expect(await cpuTime(() => machine.push(more))).toBeLessThan(3000);
    expect(machine.items).toMatchObject([{ name: 'f', arguments: long + fragment.repeat(4000) }]);
  });

  it('that begin with long white space look at each fragment alone', async () => {
    const machine = setup();
    machine.push(Buffer.from(chunk({ content: ' '.repeat(LONG) })));
    const more = Buffer.from(chunk({ content: ' ' }).repeat(10_000));
    expect(await cpuTime(() => machine.push(more))).toBeLessThan(3000);
    expect(machine.items).toEqual([]);
    expect(machine.push(Buffer.from(chunk({ content: 'x' })))).toContain(`${' '.repeat(LONG + 10_000)}x"`);
  });

  it('end with an error when thousands of blocks wait for the name of a call', () => {
    const machine = setup();
    const two = chunk({ content: 'x' }) + chunk({ reasoning_content: 'y' });
    machine.push(Buffer.from(chunk(callDelta(0, { id: 'a', arguments: '{}' })) + two.repeat(2000)));
    expect(machine.items).toEqual([]);
    const calls = Array.from({ length: 200 }, (_, index) => ({ index: index + 1, function: { name: 'f' } }));
    const name = { index: 0, function: { name: 'f', arguments: ' ' } };
    const out = machine.push(Buffer.from(chunk({ tool_calls: [...calls, name] }) + two.repeat(2000)));
    expect(out).toMatch(/^event: error\ndata: .*\n\n$/);
    expect(machine).toMatchObject({ finished: true, error: { status: 502 }, items: [] });
    expect(machine.end()).toBe('');
  });

  it('go on when many blocks have waited for the name of a call', () => {
    const machine = setup();
    const two = chunk({ content: 'x' }) + chunk({ reasoning_content: 'y' });
    machine.push(Buffer.from(chunk(callDelta(0, { id: 'a', arguments: '{}' })) + two.repeat(2000)));
    machine.push(Buffer.from(chunk(callDelta(0, { name: 'f' }))));
    expect(machine.items).toHaveLength(4001);
  });
});

describe('a stream that goes on', () => {
  const goesOn = (text: string, stop: unknown): boolean =>
    bodyToGoOn({ messages: [], stop }, { text, tokens: 9, blank: 0 }, VLLM) !== undefined;

  it('looks once at the end of its text for the start of what stops it', async () => {
    const long = 'a'.repeat(60_000);
    const stop = [`${long}b`];
    const first = await cpuTime(() => expect(goesOn('c', stop)).toBe(true));
    expect(await cpuTime(() => expect(goesOn(`${long}c`, stop)).toBe(true))).toBeLessThan(first + 50);
    expect(goesOn(`c${long}`, stop)).toBe(false);
  });

  it('does not where strings that stop it are longer than any that are meant', async () => {
    const long = 'a'.repeat(70_000);
    expect(await cpuTime(() => expect(goesOn(`${long}c`, [long])).toBe(false))).toBeLessThan(500);
    expect(
      goesOn(
        'x',
        Array.from({ length: 100_000 }, (_, index) => `s${index}`),
      ),
    ).toBe(false);
  });

  it('does not where its text ends with the start of a string that stops it, and does with all of one', () => {
    const piece = fc.stringMatching(/^[ab]{0,8}$/);
    fc.assert(
      fc.property(piece, piece, (text, stop) => {
        const starts = Array.from({ length: Math.max(0, stop.length - 1) }, (_, index) => stop.slice(0, index + 1));
        expect(goesOn(text, stop)).toBe(!starts.some((start) => text.endsWith(start)));
      }),
      { numRuns: 1000 },
    );
  });
});

describe('arguments in fragments', () => {
  const isJson = (text: string) => {
    try {
      return typeof JSON.parse(text) === 'object';
    } catch {
      return false;
    }
  };
  const pieces = fc.oneof(
    fc.json().chain((text) => fc.array(fc.nat(text.length)).map((cuts) => cutAt(text, cuts))),
    fc.array(
      fc.constantFrom('{', '}', '[', ']', '"', '\\', '\\"', '"a":', ' ', '\u00a0', ',', '{"a":"}"}', '[1]', 'x'),
    ),
  );

  it('are whole when all that came is an object or a list, and blanks', () => {
    fc.assert(
      fc.property(pieces, pieces, (first, more) => {
        const scan = new ArgumentsScan();
        let text = '';
        for (const piece of [...first, ...more]) {
          text += scan.push(piece, text);
          expect(scan.isWhole(text)).toBe(/[}\]]\s*$/.test(text) && isJson(text.trimEnd()));
        }
      }),
      { numRuns: 1000 },
    );
  });
});

function cutAt(text: string, cuts: readonly number[]): string[] {
  const ends = [0, ...cuts.toSorted((a, b) => a - b), text.length];
  return ends.slice(1).map((end, position) => text.slice(ends[position], end));
}
