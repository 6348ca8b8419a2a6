import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { AGENTS_REQUESTS } from '../gateway/dialects/cases/agents-requests.ts';
import { ANSWERS } from '../gateway/dialects/cases/answers.ts';
import { ENGINE_STREAMS } from '../gateway/dialects/cases/engine-streams.ts';
import { ERRORS } from '../gateway/dialects/cases/errors.ts';
import { MESSAGES_REQUESTS } from '../gateway/dialects/cases/messages-requests.ts';
import { MESSAGES_STREAMS } from '../gateway/dialects/cases/messages-streams.ts';
import { RESPONSES_REQUESTS } from '../gateway/dialects/cases/responses-requests.ts';
import { STREAMS } from '../gateway/dialects/cases/streams.ts';
import { NO_OVERFLOWS, OVERFLOWS } from '../gateway/overflow-words.ts';

const ROOT = new URL('../../../', import.meta.url);
const page = readFileSync(new URL('docs/build/model-regressions.md', ROOT), 'utf8');
const rows = page
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
    'claude-code',
    'gateway',
    'ik_llama.cpp',
    'ironclaw',
    'litellm',
    'llama.cpp',
    'ollama',
    'sglang',
    'text-generation-inference',
    'vllm',
  ];
  expect(projects).toEqual(new Set(all));
});

test('the number of cases is that of the data', () => {
  const all = [
    ANSWERS,
    ERRORS,
    MESSAGES_REQUESTS,
    RESPONSES_REQUESTS,
    AGENTS_REQUESTS,
    STREAMS,
    ENGINE_STREAMS,
    MESSAGES_STREAMS,
    OVERFLOWS,
    NO_OVERFLOWS,
  ].flat();
  expect(page).toContain(`Besides these threads, ${all.length} cases are kept as data`);
  expect(all.filter(({ source }) => source === '')).toEqual([]);
});
