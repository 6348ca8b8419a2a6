import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder } from '../../../tools/lib/paths.ts';
import { freePort } from './processes.ts';

/** How another gateway is started in front of the mock engine, and called. */
export interface Peer {
  name: string;
  port: number;
  command: readonly string[];
  env: Record<string, string>;
  headers: Record<string, string>;
  chatPath: string;
  /** Absent: it has no messages endpoint over a chat engine. */
  messagesPath?: string;
}

interface Recipe {
  name: string;
  /** By default the name. */
  folder?: string;
  install: (folder: string) => Promise<void>;
  peer: (folder: string, port: number, engine: string) => Omit<Peer, 'name' | 'port'>;
}

const run = promisify(execFile);
const LIMIT = { timeout: 600_000, maxBuffer: 64 << 20 };

async function pip(folder: string, requirement: string): Promise<void> {
  await run('python3', ['-m', 'venv', folder], LIMIT);
  const options = ['--quiet', '--no-input', '--disable-pip-version-check'];
  await run(join(folder, 'bin/python'), ['-m', 'pip', 'install', ...options, requirement], LIMIT);
}

async function npm(folder: string, requirement: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private":true}');
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--omit=dev'];
  await run('npm', ['install', ...options, requirement], { ...LIMIT, cwd: folder });
}

interface RustRouter {
  module: readonly string[];
  policy: string;
  port: number;
  engine: string;
}

/** Started as a module: a virtual environment that was moved has scripts with the old path in them. */
function rustRouter(folder: string, { module, policy, port, engine }: RustRouter): Omit<Peer, 'name' | 'port'> {
  const listen = ['--host', '127.0.0.1', '--port', String(port), '--prometheus-port', String(port + 1000)];
  return {
    command: [join(folder, 'bin/python'), '-m', ...module, '--worker-urls', engine, '--policy', policy, ...listen],
    env: {},
    headers: {},
    chatPath: '/v1/chat/completions',
  };
}

function vllmRouter(policy: string, words: string): Recipe {
  return {
    name: `vllm-router 0.1.17 (Rust), ${words}`,
    // Both policies run from one installation.
    folder: 'vllm-router-0.1.17',
    install: (folder) => pip(folder, 'vllm-router==0.1.17'),
    peer: (folder, port, engine) => rustRouter(folder, { module: ['vllm_router.launch_router'], policy, port, engine }),
  };
}

const RECIPES: readonly Recipe[] = [
  vllmRouter('cache_aware', 'cache-aware'),
  vllmRouter('round_robin', 'round robin'),
  {
    name: 'smg 1.13.0 (Rust), cache-aware',
    install: (folder) => pip(folder, 'smg==1.13.0'),
    peer: (folder, port, engine) =>
      rustRouter(folder, { module: ['smg', 'launch'], policy: 'cache_aware', port, engine }),
  },
  {
    name: 'Portkey 1.15.2 (Node)',
    install: (folder) => npm(folder, '@portkey-ai/gateway@1.15.2'),
    peer: (folder, port, engine) => ({
      command: [
        process.execPath,
        join(folder, 'node_modules/@portkey-ai/gateway/build/start-server.js'),
        `--port=${port}`,
        '--headless',
      ],
      env: {},
      headers: { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${engine}/v1`, authorization: 'Bearer k' },
      chatPath: '/v1/chat/completions',
    }),
  },
  {
    name: 'LiteLLM 1.106.2 (Python)',
    install: (folder) => pip(folder, 'litellm[proxy]==1.106.2'),
    peer: (folder, port, engine) => {
      const key = `sk-${randomBytes(16).toString('hex')}`;
      const config = join(folder, 'bench.yaml');
      const model = {
        model_name: 'mock',
        litellm_params: { model: 'hosted_vllm/mock', api_base: `${engine}/v1`, api_key: 'k' },
      };
      // JSON is YAML.
      writeFileSync(config, JSON.stringify({ model_list: [model], general_settings: { master_key: key } }));
      return {
        command: [
          join(folder, 'bin/python'),
          '-c',
          'from litellm import run_server; run_server()',
          '--config',
          config,
          '--host',
          '127.0.0.1',
          '--port',
          String(port),
          '--num_workers',
          '1',
        ],
        env: { LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
        headers: { authorization: `Bearer ${key}` },
        chatPath: '/v1/chat/completions',
        messagesPath: '/v1/messages',
      };
    },
  },
];

/** Installs the gateways that can be installed, once per machine, and says which could not. */
export async function preparePeers(
  engine: string,
  { isWanted, say }: { isWanted: (name: string) => boolean; say: (line: string) => void },
): Promise<Peer[]> {
  const peers: Peer[] = [];
  for (const { name, folder: own = name, install, peer } of RECIPES) {
    if (!isWanted(name)) continue;
    const folder = join(cacheFolder(process.env), 'bench', own.replaceAll(/[^\w.]+/g, '-'));
    try {
      if (!existsSync(folder)) {
        say(`Installing ${name} into ${folder}`);
        const part = `${folder}.part`;
        rmSync(part, { recursive: true, force: true });
        await install(part);
        renameSync(part, folder);
      }
      const port = await freePort();
      peers.push({ name, port, ...peer(folder, port, engine) });
    } catch (error) {
      say(`Skipped ${name}: it could not be installed (${String(error).split('\n', 1)[0]}).`);
    }
  }
  return peers;
}
