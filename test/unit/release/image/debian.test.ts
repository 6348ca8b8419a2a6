import { expect, test } from 'vitest';
import { parseDownloads } from '../../../../tools/release/image/debian.ts';

test('what apt would download is read by package, file and digest', () => {
  const digest = (digit: string): string => digit.repeat(64);
  const text = [
    `'http://deb.debian.org/pool/libstdc%2b%2b6_12.2_amd64.deb' libstdc++6_12.2-14+deb12u1_amd64.deb 612604 SHA256:${digest('5')}`,
    `'http://deb.debian.org/pool/libc6_2.36_amd64.deb' libc6_1%3a2.36-9_amd64.deb 2759320 SHA256:${digest('b')}`,
    '',
  ].join('\n');
  expect(parseDownloads(text)).toEqual([
    { name: 'libc6', file: 'libc6_1%3a2.36-9_amd64.deb', sha256: digest('b') },
    { name: 'libstdc++6', file: 'libstdc++6_12.2-14+deb12u1_amd64.deb', sha256: digest('5') },
  ]);
});
