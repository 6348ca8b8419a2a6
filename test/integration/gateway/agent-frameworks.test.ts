/** Frameworks for agents, as released, do a task through the gateway with an engine that has chat alone. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';
import { run } from '../../../tools/lib/shell.ts';
import { startAgentEngine, type AgentEngine, type Chat } from '../../support/agents/engine.ts';
import type { Reply } from '../../support/engine-answers.ts';
import { startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { pythonWith } from '../../support/python.ts';

const FOLDER = join(ROOT, 'test/support/agent-frameworks');
const CALLS: Readonly<Record<string, object>> = {
  note: { number: 7 },
  ask_helper: { question: 'Which fruit?' },
  final_result: { fruit: 'fig', number: 7 },
};

/** Calls each of its tools once, and then says what it got. */
function reply({ messages, tools = [] }: Chat): Reply {
  const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content));
  const name = tools[results.length]?.function.name;
  if (name === undefined) return { text: `Got ${results.join(', ')}` };
  return { calls: [{ id: `call_${results.length}`, name, arguments: JSON.stringify(CALLS[name]) }] };
}

let python: string;
let engine: AgentEngine;
let gateway: TestGateway;

beforeAll(async () => {
  python = join(await pythonWith('agent-frameworks', join(FOLDER, 'requirements.txt')), 'bin/python');
  engine = await startAgentEngine({ turns: [], taken: [], asked: [], reply });
  gateway = await startGateway();
  gateway.cluster.serve({ name: 'engines', ports: [engine.port] });
  await gateway.ready('tiny');
}, 600_000);

afterAll(async () => {
  await gateway.close();
  await engine.close();
});

const WAYS = ['chat stream', 'responses whole', 'responses stream', 'messages whole', 'messages stream'];

it.each([
  ['pydantic_ai', CALLS['final_result']],
  ['langchain', expect.stringMatching(/^Got noted, A small task/)],
])('an agent of %s finishes its task over each API, whole and in a stream', async (framework, final) => {
  const env = { PATH: process.env['PATH'], BERTH_URL: gateway.base, BERTH_API_KEY: 'k', LANGSMITH_TRACING: 'false' };
  // To import a framework takes seconds: one process goes all ways.
  const words = ['-W', 'ignore', join(FOLDER, `${framework}_task.py`), ...WAYS];
  const { code, stdout, stderr } = await run(python, words, { env });
  expect([code, stderr]).toEqual([0, '']);
  expect(JSON.parse(stdout)).toEqual(WAYS.map(() => ({ did: ['note 7', 'ask Which fruit?'], final })));
});
