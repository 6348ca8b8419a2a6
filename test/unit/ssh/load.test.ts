import { expect, it } from 'vitest';
import { ssh2, withLongPackets } from '../../../src/ssh/ssh2/load.ts';

const LINE = 'const MAX_PACKET_SIZE = 35000;';

it('raises the limit of ssh2 for packets, and nothing else', () => {
  expect(withLongPackets(`a\n${LINE}\nb`)).toBe('a\nconst MAX_PACKET_SIZE = 262164;\nb');
});

it.each([
  ['const MAX_PACKET_SIZE = 40000;', 'lacks the line'],
  [`${LINE}\n${LINE}`, 'lacks the line'],
])('refuses an ssh2 whose text is another: %s', (text, words) => {
  expect(() => withLongPackets(text)).toThrow(words);
  expect(() => withLongPackets(text)).toThrow('adapt src/ssh/ssh2/load.ts.');
});

it('is what the installed ssh2 is loaded with', () => {
  expect(ssh2).toHaveProperty('Server');
});
