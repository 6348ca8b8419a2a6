import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ROOT = new URL('../../../', import.meta.url);
const rows = readFileSync(new URL('docs/model-regressions.md', ROOT), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ['))
  .map((line) => /^\| (?<threads>.*?) \| .* \| `(?<file>[\w./-]+)`: (?<title>.*) \|$/.exec(line)?.groups ?? {});

test.each(rows)('$threads has the test that the table names', ({ file = '', title = '' }) => {
  const source = readFileSync(new URL(`test/unit/gateway/${file}`, ROOT), 'utf8');
  expect(source).toContain(`'${title}'`);
});

test('the table has a row for every project', () => {
  const projects = new Set(rows.map(({ threads = '' }) => /^\[([\w.-]+)#/.exec(threads)?.[1]));
  const all = [
    'ai-gateway',
    'bifrost',
    'gateway',
    'ik_llama.cpp',
    'litellm',
    'llama.cpp',
    'ollama',
    'sglang',
    'text-generation-inference',
    'vllm',
  ];
  expect(projects).toEqual(new Set(all));
});
