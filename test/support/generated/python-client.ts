import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { run } from '../../../tools/lib/shell.ts';
import { pythonWith } from '../python.ts';

/** The steps of renter.py. */
export type Step =
  | 'add_key'
  | 'remove_key'
  | 'add_registry'
  | 'remove_registry'
  | 'offers'
  | 'rent'
  | 'show'
  | 'change'
  | 'give_back'
  | 'events'
  | 'refusal'
  | 'models_by_api_key';

/** The lines of a log so far, of a program that follows it. */
export interface FollowedLog {
  lines(): string[];
  stop(): Promise<void>;
}

const record = z.record(z.string(), z.unknown());

/** A server and a key for it. */
export interface Access {
  /** Without /api/v1. */
  url: string;
  token: string;
}

/** The Python client that openapi-python-client makes from the description that a server gives. */
export class PythonClient {
  readonly #python: string;
  readonly #env: NodeJS.ProcessEnv;

  private constructor(python: string, env: NodeJS.ProcessEnv) {
    this.#python = python;
    this.#env = env;
  }

  /** Generates the client into the folder, which is made anew. Throws with what the generator says against the description. */
  static async generate({ url, token }: Access, folder: string): Promise<PythonClient> {
    const python = join(await pythonWith('generated', join(import.meta.dirname, 'requirements.txt')), 'bin/python');
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    const description = join(folder, 'openapi.json');
    await writeFile(description, await (await fetch(`${url}/openapi.json`)).text());
    const config = join(import.meta.dirname, 'config.yml');
    const where = ['--output-path', join(folder, 'berth_client'), '--config', config];
    // A warning is an endpoint or a schema that the client would lack.
    const options = ['generate', '--path', description, '--meta', 'none', '--fail-on-warning', ...where];
    const { code, stdout, stderr } = await run(python, ['-m', 'openapi_python_client', ...options]);
    if (code !== 0) throw new Error(`The generator refuses the description: ${stdout}${stderr}`);
    const own = { BERTH_URL: `${url}/api/v1`, BERTH_API_KEY: token, PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' };
    return new PythonClient(python, { ...process.env, ...own });
  }

  /** Takes one step of renter.py in a process of its own, and returns what it prints. */
  async step(step: Step, args: object = {}): Promise<Record<string, unknown>> {
    const options = { env: this.#env, input: JSON.stringify(args) };
    const { code, stdout, stderr } = await run(this.#python, [join(import.meta.dirname, 'renter.py'), step], options);
    if (code !== 0) throw new Error(`${step} of the Python client: ${stderr.slice(-2000)}`);
    return record.parse(JSON.parse(stdout));
  }

  follow(id: string): FollowedLog {
    const program = [join(import.meta.dirname, 'renter.py'), 'follow'];
    const child: ChildProcess = spawn(this.#python, program, { env: this.#env, stdio: ['pipe', 'pipe', 'inherit'] });
    const ended = once(child, 'exit');
    child.stdin?.end(JSON.stringify({ id }));
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (output += text));
    return {
      lines: () =>
        output
          .split('\n')
          .slice(0, -1)
          .map((line) => z.string().parse(JSON.parse(line))),
      async stop() {
        child.kill('SIGKILL');
        await ended;
      },
    };
  }
}
