/** Long inputs take linear time: one call must not delay the others. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StreamTranslator, parseInput, translateRequest } from '../../../../src/gateway/dialects/index.ts';
import { ArgumentsScan } from '../../../../src/gateway/dialects/stream/block.ts';
import { cpuTime } from '../../../support/cpu-time.ts';
import { callDelta, chunk } from './engines.ts';
import { at, contextOf, VLLM } from './support.ts';

describe('requests', () => {
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

  it('refer to each stored item once, which bounds them by what is stored', () => {
    const references = new Map(['a', 'b'].map((id) => [id, [{ kind: 'text' as const, text: 'x', id }]]));
    const input = ['a', 'b', 'a'].map((id) => ({ type: 'item_reference', id }));
    expect(parseInput(input.slice(0, 2), references)).toHaveLength(2);
    expect(() => parseInput(input, references)).toThrow(expect.objectContaining({ status: 400, param: 'input[2].id' }));
  });
});

describe('streams', () => {
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
