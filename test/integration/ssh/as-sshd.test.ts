import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newEd25519Key } from '../../../src/ssh/login/ed25519-key.ts';
import { describeWith } from '../../support/needs.ts';
import { pythonWith } from '../../support/python.ts';
import { finished, sshClient } from '../../support/ssh-client.ts';
import { DEBIAN } from '../../support/ssh-images.ts';
import { sshWorld, type SshWorld, WAYS } from '../../support/ssh-world.ts';
import { SSHD_PORT, startSshdIn } from '../../support/sshd-in-pod.ts';

// Each form of a session, at the gateway by both ways and at sshd of Debian, which runs in the same instance: same image,
// files, user and limits. What differs on purpose stands beside the form, with its reason, and in docs/use/ssh.md.

const onNode = describeWith('real node', 'ssh', 'mmdebstrap');

type Step =
  | { until: string }
  | { type: string }
  | { signal: string }
  | { size: readonly number[] }
  | { break: number }
  | { eof: true };

/** What a server gave. */
interface Seen {
  stdout?: string;
  stderr?: string;
  status?: number | null;
  /** A signal that ended the program. */
  signal?: string | null;
  /** The output of the command that runs afterwards. */
  afterwards?: string;
  failure?: string;
  [other: string]: unknown;
}

interface Form {
  name: string;
  command?: string;
  subsystem?: string;
  /** Columns, rows, and both in pixels. */
  terminal?: readonly number[];
  modes?: Readonly<Record<number, number>>;
  env?: Readonly<Record<string, string>>;
  encoding?: string;
  sftp?: boolean;
  /** Without steps the input ends at once. */
  steps?: readonly Step[];
  afterwards?: string;
  /** Where the lines NAME=VALUE of the probe are. */
  probe?: 'stdout' | 'afterwards';
  /** What the gateway gives in the place of what sshd gives, on purpose. */
  here?: Readonly<Record<string, unknown>>;
}

const SCREEN = [91, 33, 910, 660];
const OUT = '/tmp/probe-%SERVER';
const INTO_FILE = `. /opt/probe >${OUT} 2>&1; exit 5`;
/** The runtime of the container has a status and no signal, and a shell shows it so. */
const killedBy = (number: number): Record<string, unknown> => ({ status: 128 + number, signal: null });
/** Its files of a login are read by a shell before it, so that PATH can be mended in between. */
const SHELL = { zero: '/bin/bash', login: 'off', alias: '', function: '' };
const TWICE = ' /etc/profile /root/.bashrc /root/.profile /etc/bash.bashrc /root/.bashrc';

/** Bytes of one argument that Linux takes. */
const LONGEST = 131_071;
const NAME = 'LC_TEST=';
/** A command of so many bytes that says how long it is. */
const commandOf = (bytes: number): string => {
  const [head, tail] = ["text='", `'; echo "\${#text}"`];
  return `${head}${'x'.repeat(bytes - head.length - tail.length)}${tail}`;
};
const valueOf = (bytes: number): Readonly<Record<string, string>> => ({ LC_TEST: 'x'.repeat(bytes - NAME.length) });
const VARIABLES =
  'berth: a variable of your client was not set: a session takes 129 of together at most 262144 bytes, of which one has at most 131071 with its name, and names of letters, digits and _ other than IFS.\n';

/** Without a child, which a signal may meet or miss: bash tells of one that it met. */
const NAP = 'while :; do read -rt 0.05 -u 9; done';
/** What it reads is opened before: a signal breaks an opening off. */
const READY = 'exec 9<> <(:); echo ready';
const untilReady: Step = { until: 'ready' };

const FORMS: readonly Form[] = [
  { name: 'a command', command: '. /opt/probe', probe: 'stdout' },
  { name: 'a command on a terminal', command: '. /opt/probe', terminal: SCREEN, probe: 'stdout' },
  {
    name: 'a shell',
    steps: [{ type: `${INTO_FILE}\n` }, { eof: true }],
    afterwards: `cat ${OUT}`,
    probe: 'afterwards',
    here: SHELL,
  },
  {
    name: 'a shell on a terminal',
    terminal: SCREEN,
    steps: [{ type: `${INTO_FILE}\n` }],
    afterwards: `cat ${OUT}`,
    probe: 'afterwards',
    here: { ...SHELL, files: TWICE, 'env FILES': TWICE },
  },
  { name: 'a shell whose input ends', steps: [{ type: 'echo one\nfalse\n' }, { eof: true }] },
  { name: 'files', sftp: true },
  { name: 'a subsystem that is not there', subsystem: 'netconf' },
  { name: 'variables', command: 'echo "$LANG|$LC_TEST|$PLAIN"', env: { LANG: 'C.UTF-8', LC_TEST: 'é "$(id)" \n\\n' } },
  {
    name: 'variables that sshd is not told to take',
    command: 'echo "$PLAIN"',
    env: { PLAIN: 'taken' },
    here: { stdout: 'taken\n' },
  },
  {
    name: 'bytes that are no UTF-8, in a variable and a command',
    command: "printf '%s|%s' 'J\u00f6rg' \"$LC_NAME\" | od -An -tx1",
    env: { LC_NAME: '\u00ff\u0080' },
    encoding: 'latin-1',
  },
  { name: 'lines, quotes and a comment', command: 'echo "a  b" \'c\n"d\' # comment\necho $((6*7)) \\\n$#' },
  { name: 'a command as long as can be', command: commandOf(LONGEST) },
  {
    name: 'a command that is longer',
    command: commandOf(LONGEST + 1),
    here: {
      stderr:
        'berth: the command has 131072 bytes, and Linux takes at most 131071. Put it into a file, and run that, or send it to a shell: ssh HOST sh <FILE.\n',
    },
  },
  { name: 'a variable as long as can be', command: 'echo "${#LC_TEST}"', env: valueOf(LONGEST) },
  {
    name: 'a variable that is longer',
    command: 'echo "${#LC_TEST}"',
    env: valueOf(LONGEST + 1),
    here: { status: 0, stdout: '0\n', stderr: VARIABLES },
  },
  {
    name: 'variables of more bytes than two arguments',
    command: 'echo "${#LC_A} ${#LC_B} ${#LC_C}"',
    env: { LC_A: 'x'.repeat(LONGEST - 5), LC_B: 'x'.repeat(LONGEST - 5), LC_C: 'x' },
    // The line was said: once for a connection.
    here: { stdout: '131066 131066 0\n' },
  },
  {
    name: 'more variables than a session takes',
    command: 'env | grep -c ^LC_T',
    env: Object.fromEntries(Array.from({ length: 140 }, (_, index) => [`LC_T${index}`, 'x'])),
  },
  { name: 'a subsystem with a long name', subsystem: 'x'.repeat(200_000) },
  ...[0, 7, 255, 256, 300].map((status) => ({ name: `exit ${status}`, command: `exit ${status}` })),
  { name: 'a command that is not there', command: 'berth-nothing --x' },
  { name: 'a file that cannot run', command: '/etc/passwd' },
  { name: 'a command that cannot be read', command: 'echo one; if' },
  { name: 'both outputs', command: 'echo out; echo err >&2; echo more; exit 3' },
  { name: 'both outputs on a terminal', command: 'echo out; echo err >&2; exit 3', terminal: SCREEN },
  { name: 'input and its end', command: 'cat; echo end', steps: [{ type: 'a\0b\r\n' }, { eof: true }] },
  {
    name: 'input on a terminal',
    command: 'echo ready; cat; echo end',
    terminal: SCREEN,
    steps: [untilReady, { type: 'word\n' }, { until: 'word\r\nword' }, { type: '\u0004' }],
  },
  { name: 'a program in the background that holds the output', command: '(sleep 0.3; echo late) & echo now' },
  { name: 'outputs that are closed early', command: 'exec >&- 2>&-; sleep 0.2; exit 4' },
  {
    name: 'a program that ends before its input',
    command: 'head -c 2',
    steps: [{ type: 'x'.repeat(100_000) }, { eof: true }],
  },
  { name: 'death by SIGKILL', command: 'kill -KILL $$', here: killedBy(9) },
  { name: 'death by SIGSEGV', command: 'kill -SEGV $$', here: killedBy(11) },
  ...['USR1', 'HUP', 'INT', 'TERM'].map((signal) => ({
    name: `a signal that is handled, ${signal}`,
    command: `trap 'echo got; exit 9' ${signal}; ${READY}; ${NAP}`,
    steps: [untilReady, { signal }],
  })),
  {
    name: 'a signal that is not handled',
    command: `${READY}; ${NAP}`,
    steps: [untilReady, { signal: 'TERM' }],
    here: killedBy(15),
  },
  {
    name: 'a window of another size',
    command: `trap 'stty size; exit' WINCH; ${READY}; ${NAP}`,
    terminal: SCREEN,
    steps: [untilReady, { size: [120, 40, 1200, 800] }],
  },
  { name: 'a window without a size', command: 'stty size', terminal: [0, 0, 0, 0] },
  {
    name: 'a window in pixels',
    command: `perl -e 'ioctl(STDIN, 0x5413, $size = ""); print join " ", unpack("S4", $size)'`,
    terminal: SCREEN,
    // Neither the runtime of the container nor stty can set them.
    here: { stdout: '33 91 0 0' },
  },
  {
    name: 'the modes of a terminal',
    command: 'stty -a',
    terminal: SCREEN,
    // intr, quit, erase, iutf8, ixon, echoctl, and speeds (RFC 4254 section 8).
    modes: { 1: 24, 2: 255, 3: 8, 42: 1, 38: 0, 60: 0, 128: 38_400, 129: 38_400 },
  },
  {
    name: 'Ctrl-C',
    command: `trap 'echo got; exit 8' INT; ${READY}; ${NAP}`,
    terminal: SCREEN,
    steps: [untilReady, { type: '\u0003' }],
  },
  {
    name: 'a break',
    command: 'echo ready; read -r word; echo "$word"',
    terminal: SCREEN,
    steps: [untilReady, { break: 100 }, { type: 'word\n' }],
  },
];

/** What tells the state of a session, in whatever shell reads it. */
const PROBE = `
echo "zero=$0"
echo "flags=$-"
echo "words=$#"
echo "folder=$PWD"
echo "umask=$(umask)"
echo "level=$SHLVL"
echo "login=$(shopt -q login_shell && echo on || echo off)"
echo "files=$FILES"
echo "alias=$(alias of_profile 2>/dev/null)"
echo "function=$(type -t from_profile)"
echo "terminal=$(tty)"
for _n in 0 1 2; do echo "descriptor $_n=$(stat -Lc %F /proc/$$/fd/$_n)"; done
echo "limits=$(ulimit -a | cksum)"
echo "ids=$(id -u) $(id -g) $(id -G)"
env | sort | sed 's/^/env /'
`;

/** Every file that a shell may read says so. */
const FILES = ['/etc/profile', '/etc/bash.bashrc', '$HOME/.profile', '$HOME/.bashrc'];
const USER = 'plain';
const PREPARE = [
  'cat >/opt/probe',
  `echo '${USER}:x:1000:1000::/home/${USER}:/bin/bash' >>/etc/passwd`,
  `mkdir /home/${USER}`,
  ...FILES.map((file) => `echo 'FILES="$FILES '"${file}"'"; export FILES' >>"${file}"`),
  `echo "alias of_profile=true; from_profile() { :; }" >>"$HOME/.profile"`,
].join('\n');

/** Of the container: with sshd a session has none of them. */
const OF_CONTAINER = /^env (?:KUBERNETES_|HOSTNAME|CUDA_VERSION|NVIDIA_VISIBLE_DEVICES|BERTH_SESSION)/;
/** Of sshd alone: an instance has no mail. */
const OF_SSHD: ReadonlySet<string> = new Set(['env MAIL']);
const PATH = 'env PATH';

/** Without what differs from session to session. */
function steady(text: string): string {
  return text
    .replaceAll(/127\.0\.0\.1 \d+( 127\.0\.0\.1)? \d+/g, '127.0.0.1 PORT$1 PORT')
    .replaceAll(/pts\/\d+/g, 'pts/N');
}

function factsOf(lines: string): Record<string, string> {
  const found = [...lines.matchAll(/^([a-zA-Z][^=\r\n]*)=(.*?)\r?$/gm)];
  return Object.fromEntries(found.map(([, name = '', value = '']) => [name, steady(value)]));
}

let world: SshWorld | undefined;
let stopSshd: (() => Promise<void>) | undefined;
let seen: Record<string, Seen[]>;

beforeAll(async () => {
  const requirements = join(import.meta.dirname, '../../support/ssh-clients.txt');
  const python = join(await pythonWith('ssh-clients', requirements), 'bin/python');
  world = await sshWorld();
  const pair = newEd25519Key('');
  const key = join(world.folder, 'key');
  writeFileSync(key, pair.private, { mode: 0o600 });
  await world.addPublicKey('key', pair.public);
  await world.addInstance('one', { image: DEBIAN });
  const client = sshClient(world.configOf(world.gateways.direct, key));
  stopSshd = await startSshdIn(client, 'one', { folder: world.folder, publicKey: pair.public });
  expect(await client.ssh('one', PREPARE, { input: PROBE })).toMatchObject({ code: 0, stderr: '' });
  const { gateways } = world;
  const ports = Object.fromEntries(WAYS.map((way) => [way, gateways[way].address.port]));
  const asked = { key, instance: 'one', gateways: ports, sshd: SSHD_PORT, user: USER, forms: FORMS };
  const driver = spawn(python, [join(import.meta.dirname, '../../support/ssh-forms.py')]);
  const { code, stdout, stderr } = await finished(driver, JSON.stringify(asked));
  if (code !== 0) throw new Error(stderr);
  seen = JSON.parse(String(stdout)) as Record<string, Seen[]>;
}, 600_000);
afterAll(async () => {
  await stopSshd?.();
  await world?.end();
});

function seenBy(server: string, index: number): Seen {
  const found = seen[server]?.[index];
  if (found === undefined) throw new Error(`${server} was not asked`);
  return found;
}

onNode.each(WAYS)('a session by the gateway, %s, is as one of sshd:', (way) => {
  const rows = FORMS.map((form, index) => ({ ...form, index }));

  it.each(rows.filter(({ probe }) => probe === undefined))('$name', ({ index, here = {} }) => {
    const [gateway, sshd] = [seenBy(way, index), seenBy('sshd', index)];
    expect(gateway).toEqual({ ...sshd, ...here });
    // What no longer differs stands in no list.
    for (const [name, value] of Object.entries(here)) expect(sshd[name]).not.toEqual(value);
  });

  it.each(rows.filter(({ probe }) => probe !== undefined))('$name', ({ index, here = {}, probe = 'stdout' }) => {
    const [gateway, sshd] = [seenBy(way, index), seenBy('sshd', index)];
    expect([gateway.status, gateway.signal, gateway.failure]).toEqual([sshd.status, sshd.signal, sshd.failure]);
    const [ours, theirs] = [factsOf(gateway[probe] ?? ''), factsOf(sshd[probe] ?? '')];
    expect(theirs).toHaveProperty('zero');
    for (const folder of (ours[PATH] ?? '').split(':').slice(0, 1)) expect(folder).toBe('/usr/local/cuda/bin');
    const own = Object.entries(ours).filter(([name]) => name !== PATH && !OF_CONTAINER.test(name));
    const expected = Object.entries(theirs).filter(([name]) => name !== PATH && !OF_SSHD.has(name));
    expect(Object.fromEntries(own)).toEqual({ ...Object.fromEntries(expected), ...here });
    for (const [name, value] of Object.entries(here)) expect(theirs[name]).not.toEqual(value);
  });
});
