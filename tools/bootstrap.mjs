// The one file that must run on whatever Node the machine has (18 or newer): it makes sure that the packages of the
// lock file are installed, among them the project's own Node, and runs everything else with that one.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const MODULES = join(ROOT, 'node_modules');
const STAMP = join(MODULES, '.berth-lock');
const NODE = join(MODULES, 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
const CHECKS = ['check:types', 'check:lint', 'check:format', 'check:dead', 'check:crds'];

/** What ends a run early; the running child gets it and decides. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];
let running;
let ending = false;
for (const signal of SIGNALS) process.on(signal, () => end(signal));

// Whoever started us was killed without a word: end in order, so that nothing outlives them. Asked once, and not by
// those who end by the same Ctrl-C: being asked again later means at once.
const ancestors = readAncestors();
setInterval(() => ending || readAncestors() === ancestors || end('SIGTERM'), 500).unref();

function end(signal) {
  ending = running?.kill(signal) ?? false;
}

/** Our parent and, where npm runs us through a shell and /proc tells, npm itself. */
function readAncestors() {
  const { ppid } = process;
  if (process.env.npm_lifecycle_event === undefined || process.platform !== 'linux') return String(ppid);
  try {
    const stat = readFileSync(`/proc/${ppid}/stat`, 'utf8');
    return `${ppid} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]}`;
  } catch {
    return `${ppid} gone`;
  }
}

/** Runs a program in the foreground and resolves with its exit code. */
function runProgram(command, args, options = {}) {
  return new Promise((settle) => {
    const env = { ...process.env, PATH: `${dirname(NODE)}:${join(MODULES, '.bin')}:${process.env.PATH ?? ''}` };
    running = spawn(command, args, { cwd: ROOT, env, stdio: 'inherit', ...options });
    running.on('error', (error) => {
      process.stderr.write(`Error: ${command} cannot be run: ${error.message}.\n`);
      settle(127);
    });
    running.on('exit', (code, signal) => settle(code ?? 128 + (constants.signals[signal] ?? 0)));
  });
}

function lockHash() {
  return createHash('sha256')
    .update(readFileSync(join(ROOT, 'package-lock.json')))
    .digest('hex');
}

function isInstalled() {
  if (!existsSync(NODE)) return false;
  if (existsSync(STAMP)) return readFileSync(STAMP, 'utf8') === lockHash();
  if (!matchesLock()) return false;
  writeFileSync(STAMP, lockHash());
  return true;
}

/** Whether someone ran npm here already: it writes down what it installed in a lock file of its own. */
function matchesLock() {
  try {
    const wanted = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages;
    const present = JSON.parse(readFileSync(join(MODULES, '.package-lock.json'), 'utf8')).packages;
    return Object.entries(wanted).every(
      ([path, { version, optional }]) => path === '' || optional || present[path]?.version === version,
    );
  } catch {
    return false;
  }
}

/** Installs the packages of the lock file, with a line that says for how long it has been at it. */
async function install() {
  if (isInstalled()) return 0;
  const start = Date.now();
  const tty = process.stderr.isTTY;
  const show = () => {
    const seconds = Math.round((Date.now() - start) / 1000);
    const line = `Installing npm packages, ${seconds} s of about 30 s; next: the work itself`;
    process.stderr.write(tty ? `\r\u001B[K${line}` : `${line}\n`);
  };
  rmSync(STAMP, { force: true });
  show();
  const timer = setInterval(show, tty ? 500 : 10_000);
  let output = '';
  // The lock names every package by its hash: what the cache has needs no asking.
  const args = ['ci', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  const installing = runProgram('npm', args, { stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [running.stdout, running.stderr]) {
    stream.on('data', (data) => {
      output = (output + data).slice(-4000);
    });
  }
  const code = await installing;
  clearInterval(timer);
  if (tty) process.stderr.write('\r\u001B[K');
  if (code === 0 && existsSync(NODE)) {
    mkdirSync(MODULES, { recursive: true });
    writeFileSync(STAMP, lockHash());
    return 0;
  }
  if (code > 128) {
    process.stderr.write('Interrupted. The same command starts the installation again.\n');
    return code;
  }
  const cause = /ENOSPC/.test(output)
    ? 'the disk is full'
    : /ENOTFOUND|ECONN|ETIMEDOUT|EAI_AGAIN/.test(output)
      ? 'the npm registry cannot be reached'
      : `npm ci ended with code ${code}`;
  process.stderr.write(`Error: The packages cannot be installed: ${cause}.\nWhat to do: ${remedyOf(cause)}\n${output}`);
  return code === 0 ? 1 : code;
}

function remedyOf(cause) {
  if (cause.includes('disk')) return 'Free 1 GB and run the command again.';
  if (cause.includes('registry')) return 'Check the network and the proxy settings of npm, and run the command again.';
  return 'Read the lines below and run the command again.';
}

async function check() {
  let failed = 0;
  for (const name of CHECKS) {
    const start = Date.now();
    const code = await runProgram('npm', ['run', '--silent', name]);
    process.stdout.write(`${name}: ${code === 0 ? 'ok' : 'FAILED'} (${((Date.now() - start) / 1000).toFixed(1)} s)\n`);
    if (code > 128) return code;
    failed += code === 0 ? 0 : 1;
  }
  return failed === 0 ? 0 : 1;
}

const [command = '', ...args] = process.argv.slice(2);
let code = await install();
if (code === 0) {
  if (command === 'test') code = await runProgram(NODE, [join(MODULES, 'vitest', 'vitest.mjs'), 'run', ...args]);
  else if (command === 'check') code = await check();
  else code = await runProgram(NODE, [join(ROOT, 'tools', 'cluster', 'main.ts'), command, ...args]);
}
process.exitCode = code;
