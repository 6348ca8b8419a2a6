import { expect, it } from 'vitest';
import { plain, plainJson } from '../../../src/wire/plain.ts';

it.each([
  ['lines of Unicode', 'a\u2028b\u2029c', 'a?b?c'],
  ['what has no width', 'pro\u200bd\u2060\ufeff', 'pro?d??'],
  ['a soft hyphen and letters that are drawn as nothing', 'a\u00adb\u115f\u3164', 'a?b??'],
  ['tags', 'x\u{e0041}', 'x?'],
  ['directions', 'a\u202eb\u2066', 'a?b?'],
  ['joiners and variations where there is nothing to join or vary', '\u200dpro\u200dd\ufe0f\ufe00', '?pro?d??'],
  ['a second joiner', '\u0646\u200c\u200c', '\u0646\u200c?'],
])('%s cannot hide in a name', (_what, text, shown) => {
  expect(plain(text)).toBe(shown);
});

it.each([
  'é漢 한국어 Ελλάδα co\u0301',
  '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645',
  '\u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u2764\ufe0f\u200d\u{1f525} 1\ufe0f\u20e3',
  '葛\u{e0100}城',
])('%s stays as people write it', (text) => {
  expect(plain(text)).toBe(text);
});

it('JSON for a terminal shows what hides in a name, and means the same', () => {
  const value = { name: 'a\u2028b\u200bc\u202e\u{e0041}\u0085', lines: ['x\ny'] };
  const text = plainJson(value, 2);
  expect(text).toContain(String.raw`"a\u2028b\u200bc\u202e\udb40\udc41\u0085"`);
  expect(JSON.parse(text)).toEqual(value);
  expect(plainJson({ a: 1 }, 2)).toBe('{\n  "a": 1\n}');
});
