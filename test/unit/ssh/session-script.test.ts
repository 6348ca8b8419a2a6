import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
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

describe('encodeLine', () => {
  it('is one line whatever the text', () => {
    fc.assert(fc.property(fc.string(), (value) => encodeLine(value).indexOf('\n') === encodeLine(value).length - 1));
  });

  it('comes back from printf', () => {
    const line = encodeLine('a\\n\t%s "é"\nb').trimEnd();
    expect(execFileSync('/bin/sh', ['-c', 'printf %b "$1"', 'sh', line]).toString()).toBe('a\\n\t%s "é"\nb');
  });
});
