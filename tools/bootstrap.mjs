// Every npm script starts here. This is the one file that runs on the Node of the machine (18 or newer): it installs the
// packages of the lock file, among them the project's own Node, and runs the rest with that one.
//
//   bootstrap.mjs COMMAND...                             runs a command
//   bootstrap.mjs --needs SCRIPT COMMAND... -- [ARG...]  meets the needs of the script (tools/scripts), then runs it
//   bootstrap.mjs --each SCRIPT...                       runs npm scripts in turn, also after one has failed
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const MODULES = join(ROOT, 'node_modules');
const STAMP = join(MODULES, '.berth-lock');
const NODE = join(MODULES, 'node', 'bin', 'node');

/** Signals that end a run early. The running child gets them too, and decides when it ends. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];
let running;
let ending = false;
for (const signal of SIGNALS) process.on(signal, () => end(signal));

// When the process that started this one is killed, the child ends in order and leaves nothing behind. It gets one
// signal: after Ctrl-C the parent is gone too, and a second signal would end the child at once.
const ancestors = readAncestors();
setInterval(() => ending || readAncestors() === ancestors || end('SIGTERM'), 500).unref();

function end(signal) {
  ending = running?.kill(signal) ?? false;
}

/** The parent of this process and, where npm runs it through a shell, npm itself, as far as /proc tells. */
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

/** Whether npm has installed the packages of the lock file already: it keeps a lock file of its own of what it did. */
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

/** Installs the packages of the lock file, and shows for how long it has been at it. */
async function install() {
  if (isInstalled()) return 0;
  const start = Date.now();
  const tty = process.stderr.isTTY;
  const show = () => {
    const seconds = Math.round((Date.now() - start) / 1000);
    const line = `Installing npm packages, ${seconds} s of about 30 s`;
    process.stderr.write(tty ? `\r\u001B[K${line}` : `${line}\n`);
  };
  rmSync(STAMP, { force: true });
  show();
  const timer = setInterval(show, tty ? 500 : 10_000);
  let output = '';
  // The lock file names every package by its hash, so what the cache of npm has is good without a question.
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
    process.stderr.write('Interrupted. Run the command again to install the packages.\n');
    return code;
  }
  const cause = /ENOSPC/.test(output)
    ? 'the disk is full'
    : /ENOTFOUND|ECONN|ETIMEDOUT|EAI_AGAIN/.test(output)
      ? 'the npm registry cannot be reached'
      : `npm ci ended with code ${code}`;
  process.stderr.write(
    `Error: The npm packages cannot be installed: ${cause}.\nNext step: ${remedyOf(cause)}\n${output}`,
  );
  return code === 0 ? 1 : code;
}

function remedyOf(cause) {
  if (cause.includes('disk')) return 'Free 1 GB and run the command again.';
  if (cause.includes('registry')) return 'Check the network and the proxy settings of npm, and run the command again.';
  return 'Read the lines below and run the command again.';
}

/** Runs npm scripts and says how each went. Words that begin with a dash go to every script. */
async function runEach(words) {
  const scripts = words.filter((word) => !word.startsWith('-'));
  const options = words.filter((word) => word.startsWith('-'));
  let failed = 0;
  for (const script of scripts) {
    const start = Date.now();
    const code = await runProgram('npm', ['run', '--silent', script, '--', ...options]);
    process.stdout.write(
      `${script}: ${code === 0 ? 'ok' : 'FAILED'} (${((Date.now() - start) / 1000).toFixed(1)} s)\n`,
    );
    if (code > 128) return code;
    failed += code === 0 ? 0 : 1;
  }
  return failed === 0 ? 0 : 1;
}

/** Runs a command whose needs are met. `--yes` consents to installations; the command does not see it. */
async function runWithNeeds([script, ...words]) {
  const end = words.indexOf('--');
  const [command, ...fixed] = words.slice(0, end);
  const args = words.slice(end + 1);
  const code = await runProgram(NODE, [join(ROOT, 'tools', 'scripts', 'main.ts'), script, ...args]);
  return code === 0 ? runProgram(command, [...fixed, ...args.filter((arg) => arg !== '--yes')]) : code;
}

const [first, ...rest] = process.argv.slice(2);
let code = await install();
if (code === 0) {
  if (first === '--needs') code = await runWithNeeds(rest);
  else if (first === '--each') code = await runEach(rest);
  else code = await runProgram(first, rest);
}
process.exitCode = code;
