import fc from 'fast-check';
import { expect, it } from 'vitest';
import { lookThrough, withExactNumbers, withNumbersOf } from '../../../src/lib/exact-json.ts';
import { countStructure } from '../../../src/lib/json-structure.ts';

const exact = (text: string): unknown => withExactNumbers(JSON.parse(text), text, () => true);

it.each([
  '9223372036854775807',
  '-9223372036854775808',
  '18446744073709551615',
  '1.0',
  '0.10',
  '-0',
  '-0.0',
  '1e5',
  '1E+05',
  '1e-7',
  '0.1234567890123456789',
])('writes a number as it was read: %s', (number) => {
  for (const text of [`{"a":[${number}]}`, `{"a":${number},"b":[{"c":${number}}],"__proto__":${number}}`])
    expect(JSON.stringify(exact(text))).toBe(text);
});

it('leaves all else, and a text without such a number as it is', () => {
  const text = '{"a":[1,-2,0.5,1234567890],"s":"1.0 and 9223372036854775807 \\" 1.0","n":null}';
  const value: unknown = JSON.parse(text);
  expect(withExactNumbers(value, text, () => true)).toBe(value);
});

it('keeps what is asked for alone, and no number near the top', () => {
  const text = '{"temperature":1.0,"tools":[{"input":{"id":9223372036854775807}}],"other":[1.0]}';
  const read = withNumbersOf(JSON.parse(text), lookThrough(text, 1), (name) => name === 'input');
  expect(JSON.stringify(read)).toBe('{"temperature":1,"tools":[{"input":{"id":9223372036854775807}}],"other":[1]}');
  expect((read as { temperature: unknown }).temperature).toBe(1);
});

it('writes any JSON as it was, whatever is in its texts', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 5 }), fc.constantFrom('1.0', '12345678901234567890', '7'), (json, number) => {
      const text = `{"x":${json},"n":[${number}]}`;
      const read = JSON.stringify(exact(text));
      expect(JSON.parse(read)).toEqual(JSON.parse(text));
      expect(read.endsWith(`"n":[${number}]}`)).toBe(true);
    }),
  );
});

it('counts the objects, arrays and commas of any text', () => {
  const text = fc.string({ unit: fc.constantFrom('"', '\\', ',', '{', '[', 'a', 'é', '漢', '\n', '😀') });
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), fc.array(text, { maxLength: 40 }), (value, texts) => {
      const json = JSON.stringify([value, texts, texts.join('')]);
      expect(lookThrough(json).pieces).toBe(countStructure(Buffer.from(json), Infinity));
    }),
  );
});
