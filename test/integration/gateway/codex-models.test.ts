/** Codex as released, with the names of its own catalogue and without, does a task with a tool and a sub-agent. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isObject } from '../../../src/lib/json.ts';
import { run } from '../../../tools/lib/shell.ts';
import { startAgentEngine, type AgentEngine, type Chat } from '../../support/agents/engine.ts';
import { installAgents, type Agents } from '../../support/agents/install.ts';
import type { Reply } from '../../support/engine-answers.ts';
import { startGateway, type TestGateway } from '../../support/model-gateway.ts';

const COMMAND = 'echo made-by-agent > result.txt';
const SUB_TASK = 'Say the name of a fruit.';
const SUB_ANSWER = 'It is the quince.';
const DONE = 'The file is there, and the sub-agent named a fruit.';
const TASK = 'Write made-by-agent into result.txt by a shell command. Then ask a sub-agent for a fruit.';

/** In a model's code mode, what other models call one by one. */
const SHELL_SCRIPT = `text(await tools.exec_command({ cmd: ${JSON.stringify(COMMAND)} }));`;
const AGENT_SCRIPT = `
  const named = (end) => ALL_TOOLS.find(({ name }) => name.endsWith(end)).name;
  const made = await tools[named('spawn_agent')]({ message: ${JSON.stringify(SUB_TASK)} });
  const { agent_id: id } = typeof made === 'string' ? JSON.parse(made) : made;
  text(await tools[named('wait_agent')]({ targets: [id], timeout_ms: 30000 }));`;

/** A model that does what is due, by the tools that it has. */
function reply({ messages, tools = [] }: Chat): Reply {
  const texts = messages.map(({ content }) => JSON.stringify(content ?? ''));
  const asked = messages.findLast(({ role }) => role === 'user');
  if (JSON.stringify(asked?.content).includes(SUB_TASK)) return { text: SUB_ANSWER };
  if (texts.some((text) => text.includes(SUB_ANSWER))) return { text: DONE };
  const toolNamed = (end: string): string | undefined =>
    tools.map(({ function: { name } }) => name).find((name) => name === end || name.endsWith(`__${end}`));
  const [exec, spawn] = [toolNamed('exec'), toolNamed('spawn_agent')];
  const results = messages.filter(({ role }) => role === 'tool');
  if (results.length > 6) return { text: 'I give up.' };
  const call = (name: string | undefined, input: object): Reply => ({
    calls: [{ id: `call_${results.length}`, name: name ?? 'missing', arguments: JSON.stringify(input) }],
  });
  if (results.length === 0)
    return exec === undefined ? call(toolNamed('exec_command'), { cmd: COMMAND }) : call(exec, { input: SHELL_SCRIPT });
  const made = results.map(({ content }) => madeAgent(content)).find((one) => one !== undefined);
  if (spawn === undefined)
    return exec === undefined
      ? call(toolNamed('tool_search'), { query: 'spawn agent' })
      : call(exec, { input: AGENT_SCRIPT });
  if (made === undefined) return call(spawn, { task_name: 'fruit', message: SUB_TASK });
  const { agent_id: id } = made;
  return call(toolNamed('wait_agent'), { timeout_ms: 30_000, ...(id !== undefined && { targets: [id] }) });
}

/** What a sub-agent that was made is called, where the result of a call says so. */
function madeAgent(content: unknown): { agent_id?: string; task_name?: string } | undefined {
  const value: unknown = typeof content === 'string' && content.startsWith('{') ? JSON.parse(content) : undefined;
  return isObject(value) && ('agent_id' in value || 'task_name' in value) ? value : undefined;
}

/** An entry of the catalogue. What differs in these fields, Codex asks otherwise. */
interface Entry {
  slug: string;
  use_responses_lite: unknown;
  multi_agent_version: unknown;
  tool_mode: unknown;
  shell_type: unknown;
  apply_patch_tool_type: unknown;
  supports_search_tool: unknown;
  experimental_supported_tools: unknown;
}

function kindOf({ slug: _slug, ...entry }: Entry): string {
  const names = [
    'use_responses_lite',
    'multi_agent_version',
    'tool_mode',
    'shell_type',
    'apply_patch_tool_type',
    'supports_search_tool',
    'experimental_supported_tools',
  ] as const;
  return JSON.stringify(names.map((name) => entry[name]));
}

let agents: Agents;
let engine: AgentEngine;
let gateway: TestGateway;
let folder: string;

beforeAll(async () => {
  agents = await installAgents();
  engine = await startAgentEngine({ turns: [], taken: [], asked: [], reply });
  gateway = await startGateway();
  folder = mkdtempSync(join(tmpdir(), 'berth-codex-'));
}, 600_000);

afterAll(async () => {
  await gateway.close();
  await engine.close();
  rmSync(folder, { recursive: true, force: true });
});

function codex(home: string, cwd: string, ...args: string[]) {
  const env = { PATH: process.env['PATH'], CODEX_HOME: home, BERTH_API_KEY: 'k', HOME: cwd };
  return run(process.execPath, [agents.codex, ...args], { cwd, env });
}

/** A name for each kind of entry in the catalogue. */
async function namesOfCatalogue(): Promise<string[]> {
  const { stdout } = await codex(folder, folder, 'debug', 'models', '--bundled');
  const { models } = JSON.parse(stdout) as { models: Entry[] };
  return [...Map.groupBy(models, kindOf).values()].flatMap(([first]) => first?.slug ?? []);
}

it('Codex finishes its task by the name of any model', async () => {
  const names = ['tiny', ...(await namesOfCatalogue())];
  expect(names.length).toBeGreaterThan(3);
  gateway.cluster.serve({
    name: 'engines',
    ports: [engine.port],
    annotations: {
      'berth.dev/model-aliases': names
        .slice(1)
        .map((name) => `${name}=tiny`)
        .join(','),
    },
  });
  for (const name of names) await gateway.ready(name);
  // Side by side: most of their time they wait.
  const done = names.map(async (model) => {
    const cwd = join(folder, model);
    const home = join(cwd, 'codex');
    mkdirSync(home, { recursive: true });
    const provider = `name = "Berth"\nbase_url = "${gateway.base}/v1"\nenv_key = "BERTH_API_KEY"\nwire_api = "responses"`;
    const config = `model = "${model}"\nmodel_provider = "berth"\ncheck_for_update_on_startup = false\n\n[model_providers.berth]\n${provider}\n`;
    writeFileSync(join(home, 'config.toml'), config);
    const options = ['--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'];
    const { code, stdout, stderr } = await codex(home, cwd, 'exec', ...options, TASK);
    expect([model, code, stdout, stderr]).toEqual([model, 0, expect.stringContaining(DONE), expect.any(String)]);
    expect([model, readFileSync(join(cwd, 'result.txt'), 'utf8')]).toEqual([model, 'made-by-agent\n']);
  });
  await Promise.all(done);
}, 240_000);
