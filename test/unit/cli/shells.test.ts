import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { completionScript } from '../../../src/cli/complete.ts';
import { describeWith } from '../../support/needs.ts';
import { programSession } from '../../support/ssh-terminal.ts';
import { waitFor } from '../../support/wait-for.ts';

// Completion in the shells themselves, set up as docs/use/cli.md says, by a person who presses Tab.

const MAIN = fileURLToPath(new URL('../../../src/cli/berth.ts', import.meta.url));
const TAB = '\t';
const ENTER = '\r';

let home: string;
let server: Server;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'berth-shells-'));
  server = createServer((_request, response) => response.end('{"data":[{"id":"i-abc"},{"id":"i-xyz"}]}'));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  // Completes with the program itself, and writes down what else it is run with.
  const berth = [
    '#!/bin/sh',
    `case "$1" in __complete | completion) exec '${process.execPath}' '${MAIN}' "$@" ;; esac`,
    `echo "$*" >>'${home}/ran'`,
  ];
  await mkdir(join(home, 'bin'));
  await writeFile(join(home, 'bin/berth'), `${berth.join('\n')}\n`);
  await chmod(join(home, 'bin/berth'), 0o755);
  await writeFile(join(home, 'laptop.pub'), '');
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await rm(home, { recursive: true });
});

interface Shell {
  words: readonly string[];
  /** Files of its person, by their paths in the home. */
  files: Readonly<Record<string, string>>;
}

const SHELLS: Readonly<Record<'bash' | 'zsh' | 'fish', Shell>> = {
  bash: {
    words: ['bash', '-i'],
    files: { '.bashrc': "cd\nsource <(berth completion bash)\nPS1='ready> '\n" },
  },
  zsh: {
    words: ['zsh', '-i'],
    files: {
      '.zfunc/_berth': completionScript('zsh'),
      '.zshrc': "cd\nfpath=(~/.zfunc $fpath)\nautoload -Uz compinit\ncompinit -u\nPS1='ready> '\n",
    },
  },
  fish: {
    words: ['fish', '-i'],
    files: {
      '.config/fish/completions/berth.fish': completionScript('fish'),
      '.config/fish/config.fish': "cd\nfunction fish_prompt\n  echo -n 'ready> '\nend\n",
    },
  },
};

/** What a person types, and what the program is then run with. */
const LINES = [
  ['a command and an instance', `berth sho${TAB}i-a${TAB}`, 'show i-abc'],
  ['the second word of a command', `berth keys ad${TAB}x`, 'keys add x'],
  ['an option', `berth rent --on-ex${TAB}stop`, 'rent --on-expiry stop'],
  ['a value of an option', `berth rent --on-expiry de${TAB}`, 'rent --on-expiry delete'],
  ['an instance to copy to, without a space after its colon', `berth cp f i-x${TAB}/w`, 'cp f i-xyz:/w'],
  ['a file where nothing else is meant', `berth keys add lap${TAB}`, 'keys add laptop.pub'],
] as const;

/** What the program was run with for each of the lines, typed into the shell one after the other. */
async function typed({ words, files }: Shell): Promise<string[]> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(home, path, '..'), { recursive: true });
    await writeFile(join(home, path), text);
  }
  const { XDG_CONFIG_HOME: _config, XDG_DATA_HOME: _data, ZDOTDIR: _zsh, ...others } = process.env;
  const env = {
    ...others,
    HOME: home,
    PATH: `${join(home, 'bin')}${delimiter}${process.env['PATH']}`,
    BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    BERTH_API_KEY: 'key',
  };
  const ran = async (): Promise<string[]> => {
    return (await readFile(join(home, 'ran'), 'utf8').catch(() => '')).split('\n').slice(0, -1);
  };
  const session = programSession(words, env);
  try {
    await session.type('', /ready> /);
    for (const [index, [what, keys]] of LINES.entries()) {
      await session.type(`${keys}${ENTER}`, /ready> /);
      await waitFor(what, async () => (await ran()).length > index);
    }
    return await ran();
  } finally {
    // What is left of a line goes first.
    await session.end(`\u0015exit${ENTER}`);
  }
}

describe.each(Object.entries(SHELLS))('in %s', (name, shell) => {
  const suite = name === 'bash' ? describe : describeWith(name as 'zsh' | 'fish');
  suite('a Tab', () => {
    it('completes what help names, instances, and files', async () => {
      expect(await typed(shell)).toEqual(LINES.map(([, , words]) => words));
    });
  });
});
