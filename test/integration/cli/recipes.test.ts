import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { newEd25519Key } from '../../../src/ssh/login/ed25519-key.ts';
import { findProgram, run } from '../../../tools/lib/shell.ts';
import { type BerthCli, installCli } from '../../support/berth-cli.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { blocksOf, readManual } from '../../support/manual.ts';
import { describeWith } from '../../support/needs.ts';
import { importJupyterImage, JUPYTER } from '../../support/ssh-images.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

/** As {@link here}, for the way in of the renter: at this server, with an image that has Python, and without drivers. */
function renterHere(line: string, url: string): string {
  return line
    .replace('https://gpu.example.com', new URL(url).origin)
    .replace('~/.ssh/id_ed25519.pub', 'key.pub')
    .replace(/^berth (rent|run) /, `berth $1 --image ${JUPYTER} --disk 1 `)
    .replace(' nvidia-smi', ' \'test -n "$SSH_CONNECTION" && echo the GPUs\'');
}

/** The image of this machine, small disks, and commands that end. What needs PyTorch has stand-ins in the folder. */
function here(line: string): string {
  return line
    .replace(/--image \S+/, `--image ${JUPYTER}`)
    .replace(/--disk \d+/, '--disk 1')
    .replace(' pip install -r', ' cat')
    .replace('tail -f', 'cat')
    .replace(' --follow', '')
    .replace(/^berth open (\w+)$/, 'berth open $1 --url');
}

const TUNE = `import os
rows = open('data/rows').read().split()
os.makedirs('out')
print('tuned on', len(rows), flush=True)
open('out/model', 'w').write(' '.join(rows))
`;

const TRAIN = `import os, sys
os.makedirs('checkpoints')
open('checkpoints/new', 'w').write('1')
os.rename('checkpoints/new', 'checkpoints/1')
print('checkpoint 1', sys.argv[1:], flush=True)
`;

describeWith('real node', 'mmdebstrap')('the recipes, and the way in of the renter', () => {
  let tenant: TestNamespace;
  let berth: BerthProcess;
  let cli: BerthCli;
  let env: NodeJS.ProcessEnv;
  let folder: string;

  /** One line in a shell, as a reader pastes it. */
  async function paste(line: string): Promise<string> {
    return shell(here(line), env);
  }

  async function shell(line: string, variables: NodeJS.ProcessEnv): Promise<string> {
    const { code, stdout, stderr } = await run('bash', ['-c', line], { env: variables, cwd: folder });
    if (code !== 0) throw new Error(`${line}\n${stdout}${stderr}`);
    return stdout;
  }

  async function linesOf(chapter: string): Promise<string[]> {
    const block = blocksOf(await readManual('use/recipes.md')).find(
      (one) => one.chapter === chapter && one.comment !== '',
    );
    return block?.commands.trim().split('\n') ?? [];
  }

  beforeAll(async () => {
    const { kubeconfig, initPid = 0, programs = '' } = inject('cluster');
    tenant = await testNamespace();
    await Promise.all([kindsCounted(tenant.client), importJupyterImage({ initPid, programs })]);
    berth = await startBerth(kubeconfig);
    const { token } = await createKey(tenant.client, { namespace: tenant.name, displayName: 'renter' });
    cli = await installCli(berth.url);
    folder = join(cli.home, 'project');
    await mkdir(join(folder, 'data'), { recursive: true });
    const files = { 'data/rows': 'a b c', 'requirements.txt': '', 'tune.py': TUNE, 'train.py': TRAIN };
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const scripts = blocksOf(await readManual('use/recipes.md')).map(({ commands }) => commands);
    await writeFile(join(folder, 'train.sh'), scripts.find((text) => text.startsWith('#!')) ?? '');
    // ssh and scp take the folder of keys from /etc/passwd, and not from HOME.
    const pair = newEd25519Key('me@laptop');
    const key = join(cli.home, 'key');
    const bin = join(cli.home, 'bin');
    await mkdir(bin);
    await writeFile(key, pair.private, { mode: 0o600 });
    await writeFile(join(bin, 'code'), '#!/bin/sh\necho "$@"\n', { mode: 0o755 });
    for (const name of ['ssh', 'scp']) {
      const options = `-o IdentityFile='"${key}"' -o IdentitiesOnly=yes -o BatchMode=yes`;
      await writeFile(join(bin, name), `#!/bin/sh\nexec ${await findProgram(name)} ${options} "$@"\n`);
      await chmod(join(bin, name), 0o755);
    }
    const PATH = [bin, join(cli.prefix, 'bin'), process.env['PATH']].join(':');
    env = { ...cli.env, PATH, BERTH_URL: berth.url, BERTH_API_KEY: token, HF_TOKEN: 'none' };
    await writeFile(join(folder, 'key.pub'), pair.public);
    await waitFor('the key', async () => (await run('berth', ['offers'], { env })).code === 0);
    await paste('berth ssh-keys add key.pub --name laptop');
  }, 300_000);
  afterAll(async () => {
    await cli?.[Symbol.asyncDispose]();
    await berth?.[Symbol.asyncDispose]();
    await tenant[Symbol.asyncDispose]();
  });

  const gone = () =>
    waitFor('the rental to end', async () => {
      return (await tenant.client.list(GPU_INSTANCES, { namespace: tenant.name })).items.length === 0;
    });

  it('the way in of the renter leads from the installation to the result, and gives back', async () => {
    const lines = blocksOf(await readManual('use/renter.md')).flatMap(({ commands }) => commands.trim().split('\n'));
    const { BERTH_URL: url = '', BERTH_API_KEY: token = '', ...others } = env;
    const laptop = { ...others, npm_config_prefix: cli.prefix };
    const said = new Map<string, string>();
    for (const line of lines) {
      const typed = line.startsWith('berth login') ? `printf '%s' '${token}' | ` : '';
      said.set(line, await shell(`${typed}${renterHere(line, url)}`, laptop));
    }
    const saidBy = (start: string): string => said.get(lines.find((line) => line.startsWith(start)) ?? '') ?? '';
    expect(saidBy('berth offers')).toContain('L4');
    expect(saidBy('berth ls')).toContain('shell');
    expect(saidBy('berth ssh shell nvidia-smi')).toBe('the GPUs\n');
    expect(saidBy('berth ssh shell python3')).toContain('checkpoint 1');
    expect(saidBy('berth code')).toContain('ssh-remote+');
    expect(saidBy('berth usage')).toContain('shell');
    expect(saidBy('berth run')).toContain('checkpoint 1');
    await gone();
  });

  it('Jupyter opens in a browser', async () => {
    const [rent = '', open = '', remove = ''] = await linesOf('Jupyter');
    await paste(rent);
    const jupyter = async (): Promise<boolean> => {
      const { items } = await tenant.client.list(GPU_INSTANCES, { namespace: tenant.name });
      return items.some(({ status }) =>
        status?.conditions?.some(({ type, reason }) => type === 'Jupyter' && reason === 'Answers'),
      );
    };
    await waitFor('Jupyter', jupyter, 100_000);
    expect(await paste(open)).toMatch(/^https?:\/\/\S+$/m);
    await paste(remove);
    await gone();
  });

  it('a fine-tune has its data, and its result comes back', async () => {
    for (const line of await linesOf('Fine-tune with a data set')) {
      if (line.includes('tail')) await waitFor('the program', async () => (await paste(line)).includes('tuned on 3'));
      else await paste(line);
    }
    expect(await readFile(join(folder, 'out/model'), 'utf8')).toBe('a b c');
    await gone();
  });

  it('an interruptible instance trains from its start script', async () => {
    for (const line of await linesOf('Interruptible, with checkpoints')) {
      if (line.startsWith('berth logs')) {
        await waitFor('a checkpoint', async () =>
          (await paste(line)).includes("checkpoint 1 ['--checkpoints', 'checkpoints', '--resume']"),
        );
      } else await paste(line);
    }
    await gone();
  });
});
