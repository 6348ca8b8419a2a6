/** OpenAI's library for agents, as released, does a task through the gateway with an engine that has chat alone. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';
import { run } from '../../../tools/lib/shell.ts';
import { startAgentEngine, type AgentEngine, type Chat } from '../../support/agents/engine.ts';
import { installLibraries } from '../../support/agents/install.ts';
import type { Reply } from '../../support/engine-answers.ts';
import { startGateway, type TestGateway } from '../../support/model-gateway.ts';

const SCRIPT = readFileSync(join(ROOT, 'test/support/agent-libraries/openai-agents.mjs'), 'utf8');
const CALLS: Readonly<Record<string, object>> = {
  note: { number: 7 },
  shell: { commands: ['ls'] },
  apply_patch: { type: 'create_file', path: 'a.txt', diff: '+Hi' },
  ask_helper: { input: 'Which fruit?' },
};

/** Calls each of its tools once, and then says what it got. */
function reply({ messages, tools = [] }: Chat): Reply {
  const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content));
  const name = tools[results.length]?.function.name;
  if (name === undefined) return { text: `Got ${results.join(', ')}` };
  return { calls: [{ id: `call_${results.length}`, name, arguments: JSON.stringify(CALLS[name]) }] };
}

let folder: string;
let engine: AgentEngine;
let gateway: TestGateway;

beforeAll(async () => {
  folder = await installLibraries();
  engine = await startAgentEngine({ turns: [], taken: [], asked: [], reply });
  gateway = await startGateway();
  gateway.cluster.serve({ name: 'engines', ports: [engine.port] });
  await gateway.ready('tiny');
}, 600_000);

afterAll(async () => {
  await gateway.close();
  await engine.close();
});

it.each([
  ['responses', 'whole'],
  ['responses', 'stream'],
  ['chat_completions', 'stream'],
])(
  "OpenAI's agents finish their task over %s, %s",
  async (api, how) => {
    const env = { PATH: process.env['PATH'], OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `${gateway.base}/v1` };
    const { code, stdout, stderr } = await run(
      process.execPath,
      ['--input-type=module', '--eval', SCRIPT, '--', api, how],
      { env, cwd: folder },
    );
    expect([code, stderr]).toEqual([0, '']);
    const own = api === 'responses' ? ['shell ls', 'create_file a.txt'] : [];
    const { did, final } = JSON.parse(stdout) as { did: string[]; final: string };
    expect(did).toEqual(['note 7', ...own]);
    expect(final).toMatch(/^Got noted true, A small task/);
  },
  120_000,
);
