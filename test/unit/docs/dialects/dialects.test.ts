import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Dialect } from '../../../../src/gateway/dialects/index.ts';
import { ROOT } from '../../../../tools/lib/paths.ts';
import { fareOf, fareOfAnswer, fareOfPart, routeOf, SERVERS, type Way } from './matrix.ts';
import { ANSWERS, BLOCKS, CHAT, ITEMS, MESSAGES, RESPONSES, type Sample } from './samples.ts';

type Fare = (way: Way, name: string, sample: Sample) => string;

function tableOf(rows: readonly (readonly string[])[]): string {
  const [head = [], ...others] = rows;
  return [head, head.map(() => '---'), ...others].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Samples that fare alike share a row, and servers at which all samples fare alike share a column. */
function table(client: Dialect, title: string, samples: Record<string, Sample[]>, fare: Fare): string {
  const rows = Object.entries(samples).flatMap(([name, all]) => all.map((sample) => ({ name, sample })));
  const columns = new Map<string, { servers: string[]; cells: string[] }>();
  for (const server of SERVERS) {
    const cells = rows.map(({ name, sample }) => fare({ client, server }, name, sample));
    const key = cells.join('|');
    const column = columns.get(key) ?? { servers: [], cells };
    column.servers.push(server.name);
    columns.set(key, column);
  }
  const all = [...columns.values()];
  const names = rows.map(({ name, sample }) => `\`${name}\`${sample.part ?? ''}`);
  return tableOf([
    [title, ...all.map(({ servers }) => servers.join(', '))],
    ...rowsOf(names.map((name, row) => [name, ...all.map(({ cells }) => cells[row] ?? '')])),
  ]);
}

/** Rows that differ only in their names as one row, at the place of the first. */
function rowsOf(rows: readonly [name: string, ...cells: string[]][]): string[][] {
  const alike = Map.groupBy(rows, ([, ...cells]) => cells.join('|'));
  return [...alike.values()].map((same) => [same.map(([name]) => name).join(', '), ...(same[0] ?? []).slice(1)]);
}

const ROUTES = tableOf([
  ['Server', 'chat', 'responses', 'messages'],
  ...SERVERS.map((server) => [
    server.name,
    ...(['chat', 'responses', 'messages'] as const).map((client) => routeOf(client, server)),
  ]),
]);

const ANSWER = tableOf([
  ['Field', 'to responses', 'to messages'],
  ...rowsOf(
    Object.entries(ANSWERS).map(([name, more]) => [
      `\`${name}\``,
      fareOfAnswer('responses', more),
      fareOfAnswer('messages', more),
    ]),
  ),
]);

const PAGE = `# Dialects and engines

The gateway does this with every field of the three dialects at every engine. A test writes this page from the published types
of OpenAI's and Anthropic's clients and from the translators, and fails when it is out of date
(\`npx vitest run --project unit test/unit/docs/dialects -u\` writes it again).

## Which calls pass through

${ROUTES}

A model that thinks unasked (Qwen3, GLM, SmolLM3, Kimi K2.5, Nemotron 3) gets messages as chat. On vLLM, gpt-oss has
responses native in all cases. Older releases: \`src/gateway/dialects/quirks.ts\`.

## How to read the tables

| Cell | Meaning |
| --- | --- |
| native | the call passes through, and the server gets the field as the client wrote it |
| a name such as \`tool_calls\` | the call is translated, and the server gets the field under this name; "text" means its content as text |
| gateway | the gateway uses the field; the server does not get it |
| in the answer | the answer repeats the value, and nothing else comes of it |
| refused | 400, naming the field |
| shortened | the oldest items are left out, as the field asks |
| **lost** | left out silently: hints about price, speed, caching, abuse and state at OpenAI and Anthropic; \`seed\` and penalties where the other dialect has no field for them; thinking where the engine has no switch for it, or another model did it. All else is refused |

## Chat completions

${table('chat', 'Field', CHAT, fareOf)}

## Responses

${table('responses', 'Field', RESPONSES, fareOf)}

${table('responses', 'Item of `input`', ITEMS, fareOfPart)}

## Messages

${table('messages', 'Field', MESSAGES, fareOf)}

${table('messages', 'Block', BLOCKS, fareOfPart)}

## Answers of chat

When a call was translated, clients of the other dialects get these fields of an engine's chat answer; **told** is under the
name that their dialect has for it.

${ANSWER}
`;

test('the page on dialects and engines says what the translators do', async () => {
  await expect(PAGE).toMatchFileSnapshot(join(ROOT, 'docs/build/model-dialects.md'));
});
