import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PLANTED } from '../../simulation/planted/faults.ts';

const SRC = join(import.meta.dirname, '../../../src');

// The simulation plants them while modules are loaded, and takes minutes: whoever changes such a text learns it here.
test.each(PLANTED)('the text that is replaced is in the code once: $name', ({ file, from }) => {
  expect(readFileSync(join(SRC, file), 'utf8').split(from)).toHaveLength(2);
});
