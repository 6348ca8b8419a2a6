import { expect, test } from 'vitest';
import { common, isCovered, rangeOf } from '../../../src/lib/ip-range.ts';

test.each([
  ['10.1.2.3/8', 4, 0x0a_00_00_00n, 0x0a_ff_ff_ffn],
  ['10.1.2.3', 4, 0x0a_01_02_03n, 0x0a_01_02_03n],
  ['0.0.0.0/0', 4, 0n, 0xff_ff_ff_ffn],
  ['::/0', 6, 0n, (1n << 128n) - 1n],
  ['fd00:ec2::254', 6, (0xfd00_0ec2n << 96n) + 0x254n, (0xfd00_0ec2n << 96n) + 0x254n],
  ['64:ff9b::10.0.0.1/127', 6, (0x64_ff9bn << 96n) + 0x0a_00_00_00n, (0x64_ff9bn << 96n) + 0x0a_00_00_01n],
  ['::ffff:10.0.0.0/104', 4, 0x0a_00_00_00n, 0x0a_ff_ff_ffn],
  ['::ffff:0:0/96', 4, 0n, 0xff_ff_ff_ffn],
  ['::/80', 6, 0n, (1n << 48n) - 1n],
  ['::1', 6, 1n, 1n],
  ['1::', 6, 1n << 112n, 1n << 112n],
])('%s is IPv%i from %s to %s', (text, family, first, last) => {
  expect(rangeOf(text)).toEqual({ family, first, last });
});

test.each(['', 'x', '10.0.0.0/33', '10.0.0/8', '::1/129', 'fe80::1%eth0', '10.0.0.1/8/8'])('%j is none', (text) => {
  expect(rangeOf(text)).toBeUndefined();
});

const range = (text: string) => rangeOf(text) ?? expect.fail(text);

test.each<[range: string, by: string[], covered: boolean]>([
  ['10.0.0.0/8', ['10.0.0.0/9', '10.128.0.0/9'], true],
  ['10.0.0.0/8', ['10.128.0.0/9', '10.0.0.0/9', '10.3.0.0/16'], true],
  ['10.0.0.0/8', ['10.0.0.0/9', '10.129.0.0/16'], false],
  ['10.0.0.0/8', [], false],
  ['10.1.0.0/16', ['0.0.0.0/0'], true],
  ['10.1.0.0/16', ['::/0'], false],
])('%s is covered by %j: %s', (one, by, covered) => {
  expect(isCovered(range(one), by.map(range))).toBe(covered);
});

test('what two ranges have in common is the smaller of two networks, and nothing of two families', () => {
  expect(common(range('10.0.0.0/8'), range('10.2.0.0/16'))).toEqual(range('10.2.0.0/16'));
  expect(common(range('10.0.0.0/8'), range('11.0.0.0/8'))).toBeUndefined();
  expect(common(range('0.0.0.0/0'), range('::/0'))).toBeUndefined();
});
