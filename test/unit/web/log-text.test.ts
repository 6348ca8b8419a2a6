import { expect, it } from 'vitest';
import { logParts, textOf } from '../../../src/web/page/instances/log-text.ts';

it.each([
  ['\u001b[31mcolour 1\u001b[0m', 'colour 1'],
  ['\u001b[38;2;255;0;0mINFO\u001b[m:     up\u001b[K', 'INFO:     up'],
  ['\u001b]0;a title\u0007\u001b(Bwords', 'words'],
  [' 10%|#         |\r 50%|#####     |\r100%|##########|\r', '100%|##########|'],
  ['plain [31m and 训练 🚀', 'plain [31m and 训练 🚀'],
  ['', ''],
])('%j reads %j', (text, shown) => {
  expect(textOf(logParts(text))).toBe(shown);
});

it.each<[string, [string, string][]]>([
  [
    'a \u001b[1;31mb\u001b[22m c\u001b[39m d',
    [
      ['a ', ''],
      ['b', 'colour-1 is-bold'],
      [' c', 'colour-1'],
      [' d', ''],
    ],
  ],
  [
    '\u001b[92mok\u001b[m!',
    [
      ['ok', 'colour-2'],
      ['!', ''],
    ],
  ],
  ['\u001b[38;2;255;0;0;4mred\u001b[0m', [['red', 'colour-1 is-underlined']]],
  [
    '\u001b[38;5;33mblue\u001b[38;5;196;48;5;20mred',
    [
      ['blue', 'colour-4'],
      ['red', 'colour-1'],
    ],
  ],
  ['\u001b[41mno background', [['no background', '']]],
  ['\u001b[32m 10%\r\u001b[32m100%\u001b[0m\r', [['100%', 'colour-2']]],
])('%j has its colours', (text, parts) => {
  expect(logParts(text).map(({ text: part, look }) => [part, look])).toEqual(parts);
});

it('reads a line of any number of codes', () => {
  const codes = '1;38;5;9;'.repeat(5_000);
  expect(logParts(`\u001b[${codes}31mred`)).toEqual(logParts('\u001b[1;31mred'));
});
