import { expect, it } from 'vitest';
import { logText } from '../../../src/web/page/instances/log-text.ts';

it.each([
  ['\u001b[31mcolour 1\u001b[0m', 'colour 1'],
  ['\u001b[38;2;255;0;0mINFO\u001b[m:     up\u001b[K', 'INFO:     up'],
  ['\u001b]0;a title\u0007\u001b(Bwords', 'words'],
  [' 10%|#         |\r 50%|#####     |\r100%|##########|\r', '100%|##########|'],
  ['plain [31m and 训练 🚀', 'plain [31m and 训练 🚀'],
  ['', ''],
])('%j reads %j', (text, shown) => {
  expect(logText(text)).toBe(shown);
});
