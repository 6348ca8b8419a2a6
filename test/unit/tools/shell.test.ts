import { describe, expect, it } from 'vitest';
import { quoteWord, run } from '../../../tools/lib/shell.ts';

describe('run', () => {
  it('returns code and output, also of a command that fails', async () => {
    expect(await run('sh', ['-c', 'cat; echo no >&2; exit 3'], { input: 'yes' })).toEqual({
      code: 3,
      stdout: 'yes',
      stderr: 'no\n',
    });
  });

  it('counts a command that does not exist or takes too long as failed', async () => {
    expect((await run('/does/not/exist', [])).code).toBe(127);
    expect((await run('sleep', ['60'], { timeout: 50 })).code).toBe(137);
  });
});

describe('quoteWord', () => {
  it.each(['plain', "it's", '$HOME `id` "x" \\', '', 'a b'])('keeps %j as it is', async (word) => {
    expect((await run('sh', ['-c', `printf %s ${quoteWord(word)}`])).stdout).toBe(word);
  });
});
