import { readFileSync } from 'node:fs';
import { arch } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../../../tools/lib/paths.ts';
import { lockedNode, NODE_LOCK } from '../../../../tools/release/image/node-program.ts';

const program = readFileSync(join(ROOT, 'node_modules/node/bin/node'));

test('the Node of this checkout is the one that the image is locked to', () => {
  const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    devDependencies: Record<string, string>;
  };
  expect(NODE_LOCK.version).toBe(devDependencies['node']);
  expect(lockedNode(program, arch())).toBe(NODE_LOCK.sha256[arch()]);
});

test('another program is refused, also one that differs in a byte', () => {
  const changed = Buffer.from(program);
  changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
  expect(() => lockedNode(changed, arch())).toThrow('This is not the Node');
  expect(() => lockedNode(program, 'riscv64')).toThrow('not known');
});
