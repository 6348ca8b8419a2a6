import { describe, expect, it } from 'vitest';
import { JsonLevelsError, MOST_LEVELS, readJson } from '../../../src/lib/json.ts';

function nested(levels: number, [open, close]: readonly [string, string]): string {
  return `${open.repeat(levels)}0${close.repeat(levels)}`;
}

describe('readJson', () => {
  it('reads what JSON.parse reads', () => {
    const value = { a: [1, { b: null }], c: 'x' };
    expect(readJson(JSON.stringify(value))).toEqual(value);
    expect(() => readJson('{')).toThrow(SyntaxError);
  });

  it.each([
    ['[', ']'],
    ['{"a":1,"b":', '}'],
  ] as const)('refuses more levels than walks have room for: %s', (...brackets) => {
    for (const levels of [MOST_LEVELS + 1, 200_000])
      expect(() => readJson(nested(levels, brackets))).toThrow(JsonLevelsError);
    const most = nested(MOST_LEVELS, brackets);
    expect(JSON.stringify(readJson(most))).toBe(most);
  });
});
