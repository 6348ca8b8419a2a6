import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { filesInTar, tarHeader, tarOf } from '../../../src/lib/tar.ts';

describe('tarOf', () => {
  it('makes archives that tar reads', () => {
    const archive = tarOf([
      { name: 'bin/', type: 'directory' },
      { name: 'bin/tool', type: 'file', content: Buffer.alloc(700, 'x'), mode: 0o755 },
      { name: 'bin/link', type: 'link', target: 'tool' },
      { name: 'empty', type: 'file', content: Buffer.alloc(0) },
    ]);
    const listing = execFileSync('tar', ['-tvf', '-'], { input: archive, encoding: 'utf8' });
    const rows = listing
      .trim()
      .split('\n')
      .map((row) => row.replaceAll(/\s+/g, ' ').split(' '));
    expect(rows.map(([mode, , size, , , ...name]) => [mode, size, name.join(' ')])).toEqual([
      ['drwxr-xr-x', '0', 'bin/'],
      ['-rwxr-xr-x', '700', 'bin/tool'],
      ['lrwxrwxrwx', '0', 'bin/link -> tool'],
      ['-rw-r--r--', '0', 'empty'],
    ]);
    expect(execFileSync('tar', ['-xOf', '-', 'bin/tool'], { input: archive, encoding: 'utf8' })).toBe('x'.repeat(700));
  });

  it('keeps long paths whole', () => {
    const names = ['short', `${'d'.repeat(155)}/${'n'.repeat(100)}`, `${'d/'.repeat(60)}${'ü'.repeat(50)}`];
    const archive = tarOf(names.map((name) => ({ name, type: 'file', content: Buffer.from(name) })));
    const listing = execFileSync('tar', ['-tf', '-', '--quoting-style=literal'], { input: archive, encoding: 'utf8' });
    expect(listing.trim().split('\n')).toEqual(names);
    expect([...filesInTar(archive)].map(([name, content]) => [name, content.toString()])).toEqual(
      names.map((name) => [name, name]),
    );
  });

  it.each(['n'.repeat(101), `${'d'.repeat(156)}/n`, `d/${'n'.repeat(101)}`, `${'d'.repeat(101)}/`])(
    'refuses a name that does not fit: %s',
    (name) => {
      expect(() => tarHeader({ name, type: 'file' }, 0)).toThrow(RangeError);
    },
  );

  it('refuses the target of a link that does not fit', () => {
    expect(() => tarHeader({ name: 'l', type: 'link', target: 'n'.repeat(101) }, 0)).toThrow(RangeError);
  });
});
