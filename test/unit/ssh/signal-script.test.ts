import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { quote } from '../../../src/lib/quote.ts';
import { SESSION_VARIABLE } from '../../../src/ssh/session/session-script.ts';
import { hangUpScript } from '../../../src/ssh/session/signal-script.ts';
import { waitFor } from '../../support/wait-for.ts';

// Node sets SIGHUP back to what ends it, whatever it inherited.
const NODE = `${quote(process.execPath)} -e 'setInterval(() => undefined, 1000)'`;
const CATCHES = `sh -c 'trap : HUP; while :; do sleep 0.1; done'`;

interface Session {
  session: string;
  leader: number;
  /** Of a program that the session has named. */
  pid(name: string): number;
}

function isAlive(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ');
  } catch {
    return false;
  }
}

function commandLine(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ');
}

/** HUP is neither ignored nor caught, though it was ignored at the start. */
function hasReset(pid: number): boolean {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return ['SigIgn', 'SigCgt'].every((field) => /[02468ace]$/m.test(new RegExp(`${field}:.*`).exec(status)?.[0] ?? ''));
}

/** Starts programs as a session of their own. */
async function start(programs: Record<string, string>, last = 'wait'): Promise<Session> {
  const session = randomBytes(8).toString('hex');
  const names = Object.keys(programs);
  const script = [...names.map((name) => `${programs[name]} & echo ${name} $!`), last].join('\n');
  const child = spawn('sh', ['-c', script], { detached: true, env: { ...process.env, [SESSION_VARIABLE]: session } });
  let output = '';
  child.stdout.on('data', (part: Buffer) => (output += part.toString()));
  const pid = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(output)?.[1]);
  onTestFinished(() => {
    for (const each of [child.pid ?? 0, ...names.map(pid)]) if (isAlive(each)) process.kill(each, 'SIGKILL');
  });
  await waitFor('their names', () => names.every((name) => pid(name) > 0));
  // A shell names a program before it has its streams, and has become what it runs.
  const isReady = (name: string): boolean => !/wait|exec|^nohup/.test(commandLine(pid(name)));
  await waitFor('the programs', () => names.every(isReady));
  return { session, leader: child.pid ?? 0, pid };
}

function hangUp({ session, leader }: Session, terminal: boolean): void {
  const script = hangUpScript(session, { tools: false, terminal, leader });
  expect(spawnSync('sh', ['-c', script]).status).toBe(0);
}

describe('the end of a session without a terminal', () => {
  it('ends programs that write to it, even those that catch HUP', async () => {
    const session = await start({ quiet: 'sleep 4714', catches: CATCHES, errors: `${NODE} >/dev/null` });
    hangUp(session, false);
    for (const name of ['quiet', 'catches', 'errors'])
      expect([name, isAlive(session.pid(name))]).toEqual([name, false]);
    expect(isAlive(session.leader)).toBe(false);
  });

  it('leaves programs that write elsewhere, whatever they make of HUP', async () => {
    const session = await start({
      resets: `nohup ${NODE} >/dev/null 2>&1`,
      catches: `nohup ${CATCHES} >/dev/null 2>&1`,
      plain: 'sleep 4715 >/dev/null 2>&1',
      ignores: 'nohup sleep 4716',
    });
    await waitFor('Node', () => hasReset(session.pid('resets')));
    hangUp(session, false);
    for (const name of ['resets', 'catches', 'plain', 'ignores']) {
      expect([name, isAlive(session.pid(name))]).toEqual([name, true]);
    }
    expect(isAlive(session.leader)).toBe(false);
  });

  it('leaves a leader that writes elsewhere', async () => {
    const session = await start({ writes: 'sleep 4717' }, 'exec sleep 4718 >/dev/null 2>&1');
    await waitFor('it', () => commandLine(session.leader) === 'sleep 4718 ');
    hangUp(session, false);
    expect(isAlive(session.leader)).toBe(true);
  });
});

it('the end of a session with a terminal ends all that do not ignore HUP', async () => {
  const session = await start({ plain: 'sleep 4719 >/dev/null 2>&1', ignores: 'nohup sleep 4720 >/dev/null 2>&1' });
  hangUp(session, true);
  expect(isAlive(session.pid('plain'))).toBe(false);
  expect(isAlive(session.pid('ignores'))).toBe(true);
});
