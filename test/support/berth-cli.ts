import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../tools/lib/shell.ts';
import { finished } from './ssh-client.ts';

export interface CliResult {
  /** Exit status; null when a signal ended it. */
  code: number | null;
  stdout: string;
  stderr: string;
}

/** The renters' command line as a renter has it: installed from a server, with a home of its own. */
export interface BerthCli extends AsyncDisposable {
  home: string;
  /** Paths of the programs `berth` and `kubectl-berth`. */
  berth: string;
  kubectlBerth: string;
  /** The folder that npm installed it into. */
  prefix: string;
  env: NodeJS.ProcessEnv;
  /** Runs `berth` without a terminal. */
  run(args: readonly string[], input?: string): Promise<CliResult>;
}

/** Installs what a server serves into an empty prefix, with npm. `url` is scheme, host and port of the server. */
export async function installCli(url: string): Promise<BerthCli> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-cli-'));
  // As people's folders are.
  const [home, prefix] = [join(folder, 'home of a renter'), join(folder, 'prefix')];
  await mkdir(home);
  const { BERTH_URL: _url, BERTH_API_KEY: _key, XDG_CONFIG_HOME: _config, ...others } = process.env;
  const env = { ...others, HOME: home };
  const installed = await run('npm', ['install', '--global', '--prefix', prefix, `${url}/cli/berth.tgz`], { env });
  if (installed.code !== 0) throw new Error(`npm install failed:\n${installed.stdout}${installed.stderr}`);
  const berth = join(prefix, 'bin/berth');
  return {
    home,
    berth,
    kubectlBerth: join(prefix, 'bin/kubectl-berth'),
    prefix,
    env,
    run: async (args, input) => {
      const result = await finished(spawn(berth, args, { env }), input);
      return { ...result, stdout: result.stdout.toString() };
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
