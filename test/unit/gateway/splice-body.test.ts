import { describe, expect, it } from 'vitest';
import { spliceBody } from '../../../src/gateway/calls/splice-body.ts';
import type { Json } from '../../../src/lib/json.ts';

function splice(text: string, change: (before: Json) => Json): string {
  const before = JSON.parse(text) as Json;
  return spliceBody(Buffer.from(text), before, change(before)).toString();
}

describe('a body of which little changes', () => {
  it('is the same bytes when nothing does', () => {
    const bytes = Buffer.from('{ "model" : "a" }');
    const before = { model: 'a' };
    expect(spliceBody(bytes, before, { ...before })).toBe(bytes);
  });

  it('stays as the client wrote it around the changes', () => {
    const text = ' {"seed": 18446744073709551615,\n "model" :"a" , "messages":[{"role":"a"}],"n":1e0}\n';
    expect(splice(text, (body) => ({ ...body, model: 'b', stream_options: { include_usage: true } }))).toBe(
      ' {"stream_options":{"include_usage":true},"seed": 18446744073709551615,\n "model" :"b" , "messages":[{"role":"a"}],"n":1e0}\n',
    );
  });

  it.each([
    ['{}', { model: 'b' }, '{"model":"b"}'],
    ['{"model":"a"}', { model: 'b' }, '{"model":"b"}'],
    ['{"model":null}', { model: 'b' }, '{"model":"b"}'],
    ['{"model":12,"x":"a"}', { model: 'b' }, '{"model":"b","x":"a"}'],
    ['{"x":"model","model":"a"}', { model: 'b' }, '{"x":"model","model":"b"}'],
    ['{"model":"a", "x":{"model":"c"}}', { model: 'b' }, '{"model":"b", "x":{"model":"c"}}'],
    [String.raw`{"x":"\\","mod\u0065l":"\"a"}`, { model: 'b' }, String.raw`{"x":"\\","mod\u0065l":"b"}`],
    [String.raw`{"x":"\\\"}, ","model":"a\\"}`, { model: 'b' }, String.raw`{"x":"\\\"}, ","model":"b"}`],
    [
      '{"x":[{"y":"]"},[{}]],"z":-1.5E+3,"model":"ü" }',
      { model: 'ß', n: 1 },
      '{"n":1,"x":[{"y":"]"},[{}]],"z":-1.5E+3,"model":"ß" }',
    ],
  ])('%s with %o', (text, change, expected) => {
    expect(splice(text, (body) => ({ ...body, ...change }))).toBe(expected);
  });

  it('is written again when the change is far from the start', () => {
    for (const length of [4000, 4050, 4080, 4096, 5000]) {
      const text = `{"x":"${'y'.repeat(length)}", "model":"a", "z":1}`;
      const { x } = JSON.parse(text) as Json;
      expect(JSON.parse(splice(text, (body) => ({ ...body, model: 'b' })))).toEqual({ x, model: 'b', z: 1 });
    }
  });

  it('keeps the digits of numbers around several changes', () => {
    const text = '{"max":12, "id":12345678901234567890, "model":"a","cache_salt" : "x", "top_p":1.0}';
    expect(splice(text, (body) => ({ ...body, cache_salt: 'y', max: 3, model: 'b' }))).toBe(
      '{"max":3, "id":12345678901234567890, "model":"b","cache_salt" : "y", "top_p":1.0}',
    );
  });

  it('is written again when a member is left out', () => {
    const without = ({ id: _id, ...rest }: Json): Json => rest;
    expect(splice('{"id":1, "model":"a"}', without)).toBe('{"model":"a"}');
    expect(splice('{"id":1, "model":"a"}', (body) => ({ ...body, id: undefined }))).toBe('{"model":"a"}');
  });
});

describe('whatever the body is', () => {
  // A small generator of JSON with odd spaces, escapes and depths: the parsed result must be what was asked for.
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((seed / 2 ** 31) * below);
  };
  const pick = <T>(list: readonly T[]): T => list[random(list.length)] as T;
  const space = (): string => pick(['', '', ' ', '\n\t ']);
  const string = (): string =>
    JSON.stringify(pick(['', 'model', '"', '\\', '\\"', '},{', ']', 'ü€😀', 'a:b,c', '\\\\"\n']));
  const value = (depth: number): string => {
    const kind = random(depth > 3 ? 3 : 5);
    if (kind === 0) return string();
    if (kind === 1) return pick(['1', '-0.5e-7', 'true', 'false', 'null', '12345678901234567890']);
    if (kind === 2) return pick(['{}', '[]', '{ }', '[\n]']);
    const inner = Array.from({ length: 1 + random(3) }, () => value(depth + 1));
    if (kind === 3) return `[${inner.map((one) => `${space()}${one}${space()}`).join(',')}]`;
    return `{${inner.map((one, index) => `${space()}"k${index}"${space()}:${space()}${one}${space()}`).join(',')}}`;
  };

  it('reads as it should', () => {
    for (let round = 0; round < 2000; round += 1) {
      const names = ['model', 'stream', 'messages', 'max_tokens', 'x"y', 'z'].slice(0, random(7));
      const members = names.map(
        (name) => `${space()}${JSON.stringify(name)}${space()}:${space()}${value(0)}${space()}`,
      );
      const text = `${space()}{${members.join(',')}}${space()}`;
      const before = JSON.parse(text) as Json;
      const after = { ...before, model: 'new', ...(random(2) === 0 && { max_tokens: 5, store: false }) };
      expect(JSON.parse(spliceBody(Buffer.from(text), before, after).toString())).toEqual(after);
    }
  });
});
