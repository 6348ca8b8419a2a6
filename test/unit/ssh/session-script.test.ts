import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { quote } from '../../../src/lib/quote.ts';
import { encodeLine, launcher, sessionScript, type Launch } from '../../../src/ssh/session/session-script.ts';

// Empty: some builds of bash read ~/.bashrc when their stdin is a socket, which it is here.
const NO_HOME = mkdtempSync(join(tmpdir(), 'berth-home-'));
afterAll(() => rmSync(NO_HOME, { recursive: true }));

function launch(fields: Partial<Launch>): Launch {
  return {
    session: 'abc',
    endMarker: 'bye',
    action: { kind: 'shell' },
    terminal: undefined,
    env: new Map(),
    ...fields,
  };
}

/** Runs a launch with this machine's /bin/sh, as a pod without tools would. */
function run(
  fields: Partial<Launch>,
  input = '',
  env: NodeJS.ProcessEnv = { HOME: NO_HOME },
): ReturnType<typeof spawnSync> {
  const [shell = '', ...rest] = launcher({ tools: false, tty: false });
  return spawnSync(shell, rest, { input: `${encodeLine(sessionScript(launch(fields), false))}${input}`, env });
}

describe('launcher', () => {
  it('carries nothing of the session on its command line', () => {
    expect(launcher({ tools: true, tty: true }).join(' ')).not.toContain('abc');
  });

  it('leaves every byte after its line to the command', () => {
    const result = run({ action: { kind: 'command', command: 'cat' } }, 'first\nsecond');
    expect(String(result.stdout)).toBe('first\nsecond');
  });

  it('gives back the exit status', () => {
    expect(run({ action: { kind: 'command', command: 'exit 42' } }).status).toBe(42);
  });

  it('passes any command and value through as they are', () => {
    // One shell for many values: starting it is what takes the time.
    const awkward = Array.from(`'"\`$\\ \n\t\r!*?#%&;|<>(){}[]~=a0é😀\u{1}\u{7f}\u{2028}`);
    const value = fc.string({ unit: fc.constantFrom(...awkward), maxLength: 20 });
    const values = fc.sample(value, 40);
    const env = new Map(values.map((text, index) => [`V_${index}`, text]));
    const command = values.map((text, index) => `printf '%s\\0%s\\0' ${quote(text)} "$V_${index}"`).join('; ');
    const result = run({ action: { kind: 'command', command }, env });
    expect(String(result.stdout).split('\0').slice(0, -1)).toEqual(values.flatMap((text) => [text, text]));
  });

  it('passes bytes that are no text through, too', () => {
    const bytes = Buffer.from(Array.from({ length: 255 }, (_, index) => index + 1));
    const command = Buffer.concat([
      Buffer.from(`printf '%s|%s' "$LC_A" '`),
      Buffer.from('J\u00f6rg', 'latin1'),
      Buffer.from(`'`),
    ]);
    const { stdout } = run({ action: { kind: 'command', command }, env: new Map([['LC_A', bytes]]) });
    expect(Buffer.from(stdout)).toEqual(Buffer.concat([bytes, Buffer.from('|J\u00f6rg', 'latin1')]));
  });

  it('keeps the environment of the container and appends the tools to its PATH', () => {
    const command = 'echo "$CUDA_VERSION|$PATH"';
    const result = run({ action: { kind: 'command', command } }, '', {
      HOME: NO_HOME,
      CUDA_VERSION: '12.4',
      PATH: '/opt/cuda/bin:/usr/bin',
    });
    expect(String(result.stdout)).toBe('12.4|/opt/cuda/bin:/usr/bin:/.berth/bin:/.berth/applets\n');
  });

  it('finds a writable home when the container names none', () => {
    const result = run({ action: { kind: 'command', command: 'cd; test -w "$PWD" && echo "$HOME"' } }, '', {
      HOME: '/nowhere',
      PATH: '/usr/bin',
    });
    expect(String(result.stdout).trim()).not.toBe('');
    expect(String(result.stdout)).not.toContain('/nowhere');
  });
});

describe('a shell', () => {
  const home = (files: Record<string, string>): string => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-login-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
    return folder;
  };

  it('reads the files of a login, and loses no folder of the PATH of the image by them', () => {
    const HOME = home({ '.profile': 'export PATH="$HOME/bin:/usr/bin:/bin" OF_PROFILE=1\n' });
    const result = run({ endMarker: undefined }, 'echo "$OF_PROFILE|$PATH|$SHLVL|$BERTH_PATH"\n', {
      HOME,
      PATH: '/opt/cuda/bin:/usr/bin:/bin',
    });
    const path = `/opt/cuda/bin:${HOME}/bin:/usr/bin:/bin:/.berth/bin:/.berth/applets`;
    expect(String(result.stdout).trim()).toBe(`1|${path}|1|`);
  });

  it('on a terminal has the modes of its client, knows it, and reads what an interactive shell does', () => {
    const HOME = home({ '.profile': 'export READ="$READ profile"\n', '.bashrc': 'export READ="$READ bashrc"\n' });
    const modes = ['erase', '^H', 'intr', '^X', 'kill', 'undef', '-ixon', 'iutf8'];
    const terminal = { term: 'xterm', columns: 101, rows: 31, modes };
    const env = new Map([['SSH_CONNECTION', '192.0.2.1 50000 10.0.0.1 22']]);
    const on = (action: Launch['action'], typed: string): string => {
      const script = sessionScript(launch({ action, terminal, env, sentSize: '31 101' }), false);
      writeFileSync(join(HOME, 'line'), encodeLine(script));
      writeFileSync(join(HOME, 'start'), `IFS= read -r _b <"${HOME}/line"; eval "$(printf %b "$_b")"`);
      const words = ['-q', '-e', '-c', `sh ${join(HOME, 'start')}`, '/dev/null'];
      const variables = { HOME, PATH: '/usr/bin:/bin', SHLVL: '5' };
      return spawnSync('script', words, { input: typed, env: variables, encoding: 'utf8' }).stdout;
    };
    writeFileSync(join(HOME, 'probe'), 'echo "@read$READ"; [ "$SSH_TTY" = "$(tty)" ] && echo @tty; stty -a\n');
    const command = `. ${join(HOME, 'probe')}`;
    const [shell, one] = [on({ kind: 'shell' }, `${command}; exit\n`), on({ kind: 'command', command }, '')];
    expect(shell).toMatch(/^@read profile bashrc\r$/m);
    for (const screen of [shell, one]) {
      expect(screen).toMatch(/^@tty\r$/m);
      expect(screen).toMatch(/\siutf8\s/);
      for (const mode of ['rows 31; columns 101', 'erase = ^H', 'intr = ^X', 'kill = <undef>', '-ixon']) {
        expect(screen).toContain(mode);
      }
    }
  });

  it('waits for the size on its way, and undoes none that came since', () => {
    const HOME = home({});
    const terminal = { term: 'xterm', columns: 101, rows: 31, modes: [] };
    const seenAt = (size: string): string => {
      const action = { kind: 'command', command: 'stty size' } as const;
      const script = sessionScript(launch({ action, terminal, sentSize: '30 100' }), false);
      writeFileSync(join(HOME, 'line'), encodeLine(script));
      writeFileSync(join(HOME, 'start'), `stty ${size}\nIFS= read -r _b <"${HOME}/line"; eval "$(printf %b "$_b")"`);
      const words = ['-q', '-e', '-c', `sh ${join(HOME, 'start')}`, '/dev/null'];
      return spawnSync('script', words, { env: { HOME, PATH: '/usr/bin:/bin' }, encoding: 'utf8' }).stdout.trim();
    };
    const later = '(sleep 0.3; stty rows 31 cols 101 </dev/tty) &';
    expect(['rows 0 cols 0', `rows 0 cols 0; ${later}`, `rows 30 cols 100; ${later}`].map(seenAt)).toEqual(
      Array.from({ length: 3 }, () => '31 101'),
    );
    expect(['rows 30 cols 100', 'rows 34 cols 92'].map(seenAt)).toEqual(['30 100', '34 92']);
  });

  it('changes no variable of the user, whatever its name', () => {
    const names = 'abcdefghijklmnopqrstuvwxyz'.split('').map((letter) => `_${letter}`);
    const values = Object.fromEntries(names.map((name) => [name, `of ${name}`]));
    const shown = names.map((name) => `$${name}`).join('|');
    const expected = names.map((name) => `of ${name}`).join('|');
    for (const endMarker of ['bye', undefined]) {
      const command: Launch['action'] = { kind: 'command', command: `echo "${shown}"` };
      expect(String(run({ action: command, endMarker }, '', values).stdout)).toBe(`${expected}\n`);
      const shell = run({ action: { kind: 'shell' }, endMarker }, `echo "${shown}"\n`, values);
      expect(String(shell.stdout)).toBe(`${expected}\n`);
    }
  });

  it('says nothing of its own when a signal ends the program, and what the program says comes whole', () => {
    const result = run({ action: { kind: 'command', command: 'echo out; echo err >&2; kill -KILL $$' } });
    expect([result.status, String(result.stdout), String(result.stderr)]).toEqual([137, 'out\n', 'err\nbye']);
  });

  it('outlives a signal for its process group that the program handles', () => {
    const command = `trap 'echo got; exit 9' HUP; kill -HUP $PPID $$; sleep 1`;
    const result = run({ action: { kind: 'command', command } });
    expect([result.status, String(result.stdout)]).toEqual([9, 'got\n']);
  });

  it('has the bare name of the shell in its messages, as with sshd', () => {
    const result = run({ action: { kind: 'command', command: 'echo "$0 $#"; berth-nothing' } });
    expect(String(result.stdout)).toMatch(/^[a-z]+ 0\n$/);
    expect(String(result.stderr)).toMatch(/^[a-z]+: .*berth-nothing.*not found/);
  });

  it('gives back its exit status', () => {
    expect(run({}, 'exit 3\n').status).toBe(3);
  });

  it('knows where its user is, and is the first shell', () => {
    const env = new Map([['SSH_CONNECTION', '192.0.2.1 50000 10.0.0.1 22']]);
    const command = 'echo "$SSH_CONNECTION|${SHLVL:-none}"';
    const result = run({ action: { kind: 'command', command }, env }, '', { HOME: NO_HOME, SHLVL: '7' });
    expect(String(result.stdout)).toMatch(/^192\.0\.2\.1 50000 10\.0\.0\.1 22\|(?:none|0|1)\n$/);
  });
});

describe('encodeLine', () => {
  it('is one line whatever the text', () => {
    fc.assert(fc.property(fc.string(), (value) => encodeLine(value).indexOf('\n') === encodeLine(value).length - 1));
  });

  it('comes back from printf', () => {
    const line = encodeLine('a\\n\t%s "é"\nb').trimEnd();
    expect(execFileSync('/bin/sh', ['-c', 'printf %b "$1"', 'sh', line]).toString()).toBe('a\\n\t%s "é"\nb');
  });
});
