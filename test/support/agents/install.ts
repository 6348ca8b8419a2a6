import { existsSync, mkdirSync, copyFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder } from '../../../tools/lib/paths.ts';
import { run } from '../../../tools/lib/shell.ts';
import { hashOf } from '../python.ts';

const FILES = ['package.json', 'package-lock.json'] as const;
const AGENTS = 'test/support/agents';
const LIBRARIES = 'test/support/agent-libraries';

export interface Agents {
  claude: string;
  /** A script for Node. */
  codex: string;
  opencode: string;
}

/** Claude Code, Codex and OpenCode in the locked versions, installed into the cache of the machine on the first call. */
export async function installAgents(): Promise<Agents> {
  const folder = await installed('agents', AGENTS);
  const modules = join(folder, 'node_modules');
  return {
    // The package for the platform, without the script that would copy it after the installation.
    claude: join(modules, `@anthropic-ai/claude-code-${process.platform}-${process.arch}`, 'claude'),
    codex: join(modules, '@openai/codex/bin/codex.js'),
    opencode: join(modules, 'opencode-linux-x64/bin/opencode'),
  };
}

/** The folder with OpenAI's library for agents in the locked version. */
export function installLibraries(): Promise<string> {
  return installed('agent-libraries', LIBRARIES);
}

async function installed(name: string, from: string): Promise<string> {
  const folder = join(cacheFolder(process.env), `${name}-${hashOf(join(from, 'package-lock.json'))}`);
  if (!existsSync(folder)) await install(folder, from);
  return folder;
}

async function install(folder: string, from: string): Promise<void> {
  process.stderr.write(`Installing what ${from} asks for into ${folder}\n`);
  const part = `${folder}.${process.pid}`;
  rmSync(part, { recursive: true, force: true });
  mkdirSync(part, { recursive: true });
  for (const file of FILES) copyFileSync(join(from, file), join(part, file));
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', part];
  const { code, stderr } = await run('npm', args);
  if (code !== 0) throw new Error(`npm ci of ${from} failed: ${stderr.slice(-2000)}`);
  renameSync(part, folder);
}
