/** Claude Code, Codex and OpenCode, as released, finish a task through the gateway while the engines misbehave. */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import { startAgentEngine, type Chat, type Schedule, type Turn } from '../../support/agents/engine.ts';
import { installAgents, type Agents } from '../../support/agents/install.ts';
import { scaledClock } from '../../support/scaled-clock.ts';
import { startGateway, type TestGateway } from '../../support/model-gateway.ts';

const COMMAND = 'echo made-by-agent > result.txt';
const DONE = 'All done: result.txt is there.';
const TASK = 'Write made-by-agent into result.txt by a shell command.';

/** The tool that runs commands: Claude Code's, OpenCode's, or one of those that Codex offers by its version and model. */
const SHELLS: Readonly<Record<string, object>> = {
  Bash: { command: COMMAND, description: 'Writes the file' },
  bash: { command: COMMAND, description: 'Writes the file' },
  exec_command: { cmd: COMMAND },
  shell_command: { command: COMMAND },
  shell: { command: ['bash', '-c', COMMAND] },
};

function reply({ messages, tools = [] }: Chat) {
  if (messages.some(({ role }) => role === 'tool')) return { text: DONE };
  const shell = tools.map((tool) => tool.function.name).find((name) => name in SHELLS) ?? 'Bash';
  return { text: 'I run it.', calls: [{ id: 'call_1', name: shell, arguments: JSON.stringify(SHELLS[shell]) }] };
}

/** It is locked for this platform alone. */
const HAS_OPENCODE = process.platform === 'linux' && process.arch === 'x64';

/** For those that run on Bun: they end before it pays to optimize them. */
const NO_OPTIMIZER = '0';

interface Finished {
  code: number | null;
  output: string;
}

function run(program: string, args: readonly string[], cwd: string, env: Record<string, string>): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const PATH = process.env['PATH'] ?? '';
    const all = { PATH, HOME: cwd, BUN_JSC_useDFGJIT: NO_OPTIMIZER, ...env };
    const child = spawn(program, args, { cwd, env: all, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const take = (data: Buffer): void => {
      output += data.toString('utf8');
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output }));
  });
}

describe('a coding agent', () => {
  let agents: Agents;
  let gateway: TestGateway;
  let folder: string;
  let schedule: Schedule;
  const running: { close: () => Promise<void> }[] = [];

  beforeAll(async () => {
    agents = await installAgents();
  }, 600_000);

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'berth-agent-'));
  });

  /** Two engines with this schedule, and a gateway in front of them. */
  async function start(turns: readonly Turn[], clock = systemClock()): Promise<void> {
    schedule = { turns: [...turns], taken: [], asked: [], reply };
    const engines = await Promise.all([startAgentEngine(schedule), startAgentEngine(schedule)]);
    gateway = await startGateway(undefined, { clock });
    running.push(gateway, ...engines);
    gateway.cluster.serve({ name: 'engines', ports: engines.map(({ port }) => port) });
    await gateway.ready('tiny', 2);
  }

  afterEach(async () => {
    for (const each of running.splice(0)) await each.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function claude(...options: string[]): Promise<Finished> {
    const env = {
      ANTHROPIC_BASE_URL: gateway.base,
      ANTHROPIC_AUTH_TOKEN: 'k',
      ANTHROPIC_MODEL: 'tiny',
      ANTHROPIC_DEFAULT_HAIKU_MODEL: 'tiny',
      CLAUDE_CODE_MAX_CONTEXT_TOKENS: '200000',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    };
    return run(agents.claude, ['-p', TASK, '--allowedTools', 'Bash', ...options], folder, env);
  }

  function codex(...command: string[]): Promise<Finished> {
    const home = join(folder, 'codex');
    mkdirSync(home, { recursive: true });
    const provider = `name = "Berth"\nbase_url = "${gateway.base}/v1"\nenv_key = "BERTH_API_KEY"\nwire_api = "responses"`;
    const config = `model = "tiny"\nmodel_provider = "berth"\nmodel_context_window = 200000\ncheck_for_update_on_startup = false\n\n[model_providers.berth]\n${provider}\n`;
    writeFileSync(join(home, 'config.toml'), config);
    const options = ['--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'];
    const args = [agents.codex, 'exec', ...options, ...command, TASK];
    return run(process.execPath, args, folder, { CODEX_HOME: home, BERTH_API_KEY: 'k' });
  }

  /** @param npm the library of the AI SDK that makes its calls, each of another dialect */
  function opencode(npm = '@ai-sdk/openai-compatible'): Promise<Finished> {
    const home = join(folder, 'opencode');
    mkdirSync(home, { recursive: true });
    // It reads all models that it knows of at each start, and needs none of them.
    const known = join(home, 'models.json');
    writeFileSync(known, '{}');
    const options = { baseURL: `${gateway.base}/v1`, apiKey: 'k' };
    const models = { tiny: { limit: { context: 200_000, output: 8192 } } };
    const config = { model: 'berth/tiny', small_model: 'berth/tiny', provider: { berth: { npm, options, models } } };
    return run(agents.opencode, ['run', TASK], folder, {
      HOME: home,
      OPENCODE_CONFIG_CONTENT: JSON.stringify(config),
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_MODELS_PATH: known,
      // It would have npm install a library for plugins.
      npm_config_offline: 'true',
    });
  }

  /** Faults before and during the answer with the call, then before the last answer. */
  const SCHEDULES: [string, Turn[]][] = [
    ['behave', ['good', 'good']],
    ['fail before they answer', ['error in the head', 'status 500', 'good', 'reset', 'good']],
    ['cut an answer in the middle', ['cut', 'good', 'cut', 'good']],
    ['answer in their own ways', ['whole', 'no DONE']],
  ];
  /** The other engine is left. */
  const HANGS: [string, Turn[]][] = [
    ['before the answer', ['hang', 'good', 'good']],
    ['in the middle of the answer', ['hang in the middle', 'good', 'good']],
    ['before the last answer', ['good', 'hang', 'good']],
  ];

  function expectDone({ code, output }: Finished, turns: readonly Turn[]): void {
    expect([code, output]).toEqual([0, expect.stringContaining(DONE)]);
    expect(readFileSync(join(folder, 'result.txt'), 'utf8')).toBe('made-by-agent\n');
    // Everything on the schedule happened.
    expect(schedule.taken.slice(0, turns.length)).toEqual(turns);
  }

  describe.each([
    ['Claude Code', claude],
    ['Codex', codex],
    ...(HAS_OPENCODE ? ([['OpenCode', opencode]] as const) : []),
  ] as const)('%s', (_name, work) => {
    it.each(SCHEDULES)(
      'finishes its task when engines %s',
      async (_what, turns) => {
        await start(turns);
        expectDone(await work(), turns);
      },
      120_000,
    );

    it.each(HANGS)(
      'finishes its task when an engine hangs %s',
      async (_what, turns) => {
        // The gateway takes half a minute to be sure.
        await start(turns, scaledClock(10));
        expectDone(await work(), turns);
      },
      120_000,
    );
  });

  it('Claude Code has a prompt beyond the context summed up, and finishes its task', async () => {
    const turns: Turn[] = ['good', 'overflow', 'good'];
    await start(turns);
    expectDone(await claude(), turns);
    expect(JSON.stringify(schedule.asked[2]?.messages.at(-1))).toMatch(/summary/i);
  }, 120_000);

  it('Codex knows a prompt beyond the context as one, and finishes its task when it goes on', async () => {
    const turns: Turn[] = ['good', 'overflow', 'good'];
    await start(turns);
    const first = await codex();
    expect([first.code, first.output]).toEqual([1, expect.stringMatching(/ran out of room in the model's context/)]);
    expectDone(await codex('resume', '--last'), turns);
  }, 120_000);

  it.runIf(HAS_OPENCODE).each(['@ai-sdk/anthropic', '@ai-sdk/openai'])(
    'OpenCode finishes its task with %s when engines fail and cut an answer',
    async (npm) => {
      const turns: Turn[] = ['status 500', 'cut', 'good', 'cut', 'good'];
      await start(turns);
      expectDone(await opencode(npm), turns);
    },
    120_000,
  );

  it.runIf(HAS_OPENCODE)(
    'OpenCode has a prompt beyond the context summed up, and goes on to the end of its task',
    async () => {
      const turns: Turn[] = ['good', 'overflow', 'good'];
      await start(turns);
      const { output } = await opencode();
      // It ends with 1, because there was an error.
      expectDone({ code: 0, output }, turns);
      expect(JSON.stringify(schedule.asked[2]?.messages)).toContain('The conversation was compacted');
    },
    120_000,
  );
});
