import { quote } from '../../lib/quote.ts';
import { TOOLS_APPLETS, TOOLS_BIN } from '../../resources/pod/tools-volume.ts';

export const BUSYBOX = `${TOOLS_BIN}/busybox`;
/** The terminal launcher prints this when it is ready to read the script without echo. */
export const READY_BYTE = 0x01;
/** Environment variable that marks the processes of a session. */
export const SESSION_VARIABLE = 'BERTH_SESSION';

export interface Terminal {
  term: string;
  columns: number;
  rows: number;
  /** Arguments of stty. */
  modes: readonly string[];
}

/** What a user gives: text, or bytes that need not be UTF-8. */
type Given = string | Buffer;

export type Action =
  | { kind: 'shell' }
  | { kind: 'command'; command: Given }
  | { kind: 'program'; argv: readonly string[] }
  | { kind: 'sftp' };

export interface Launch {
  session: string;
  /**
   * The script writes this to stderr when the program has ended. Nobody else knows it. Undefined where the program itself
   * may end the session: not used by terminals either.
   */
  endMarker: string | undefined;
  action: Action;
  terminal: Terminal | undefined;
  /** Rows and columns that went over the resize channel of the exec call first, which may be behind the script. */
  sentSize?: string;
  env: ReadonlyMap<string, Given>;
}

/**
 * The command line of the exec call, without what the user asked for: the API server's audit log would hold it. The
 * launcher reads the script as one line from stdin, byte by byte as POSIX `read` does; the rest of stdin is the user's.
 */
export function launcher(options: { tools: boolean; tty: boolean }): readonly string[] {
  const shell = options.tools ? [BUSYBOX, 'sh'] : ['/bin/sh'];
  const stty = options.tools ? `${BUSYBOX} stty` : 'stty';
  const read = 'IFS= read -r _berth_b && eval "$(printf %b "$_berth_b")"';
  if (!options.tty) return [...shell, '-c', read];
  return [
    ...shell,
    '-c',
    `_berth_s=$(${stty} -g); ${stty} raw -echo; printf '\\001'; IFS= read -r _berth_b; ${stty} "$_berth_s"; eval "$(printf %b "$_berth_b")"`,
  ];
}

/** The command line of a program on the direct way: it reads the script from descriptor 3, and all of stdin is the user's. */
export const DIRECT_LAUNCHER: readonly string[] = [
  BUSYBOX,
  'sh',
  '-c',
  'IFS= read -r _berth_b <&3; exec 3<&-; eval "$(printf %b "$_berth_b")"',
];

/** The text as Node holds bytes in a string: each as one character. */
function binary(given: Given): string {
  return (typeof given === 'string' ? Buffer.from(given) : given).toString('latin1');
}

/** One line that `printf %b` turns back into the bytes, those of UTF-8 for a text, in dash, bash and busybox alike. */
export function encodeLine(given: Given): string {
  let line = '';
  for (const byte of typeof given === 'string' ? Buffer.from(given) : given) {
    const plain = byte >= 0x20 && byte < 0x7f && byte !== 0x5c;
    line += plain ? String.fromCharCode(byte) : `\\0${byte.toString(8).padStart(3, '0')}`;
  }
  return `${line}\n`;
}

/**
 * Gives the session a sane HOME, USER, SHELL and PATH and keeps the rest of the container's environment. It uses shell
 * built-ins only, because the image may have no programs. The shell of /etc/passwd wins, unless it is nologin or the like,
 * as often in images. bash counts shells in SHLVL, and reads ~/.bashrc for a command only in the first one.
 */
const ENVIRONMENT = `
_berth_u=0; while read -r _berth_k _berth_v _berth_r; do case $_berth_k in Uid:) _berth_u=$_berth_v; break;; esac; done </proc/self/status
_berth_n= _berth_h= _berth_s=
if [ -r /etc/passwd ]; then
  while IFS=: read -r _berth_a _berth_p _berth_i _berth_g _berth_c _berth_d _berth_e; do
    if [ "$_berth_i" = "$_berth_u" ]; then _berth_n=$_berth_a _berth_h=$_berth_d _berth_s=$_berth_e; break; fi
  done </etc/passwd
fi
if [ -z "$HOME" ] || [ "$HOME" = / ] || [ ! -w "$HOME" ]; then
  for _berth_d in "$_berth_h" /workspace /tmp /; do if [ -n "$_berth_d" ] && [ "$_berth_d" != / ] && [ -d "$_berth_d" ] && [ -w "$_berth_d" ]; then break; fi; done
  export HOME="$_berth_d"
fi
export USER="\${_berth_n:-\${USER:-$_berth_u}}"
export LOGNAME="$USER"
export PATH="\${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}:${TOOLS_BIN}:${TOOLS_APPLETS}"
for _berth_e in "$_berth_s" "$SHELL" /bin/bash /usr/bin/bash /bin/sh ${TOOLS_BIN}/sh; do
  case $_berth_e in */nologin|*/false|*/sync|*/git-shell|'') continue;; esac
  if [ -x "$_berth_e" ]; then break; fi
done
export SHELL="$_berth_e"
cd "$HOME" 2>/dev/null || cd /
unset SHLVL OLDPWD
`;

/** Shells of POSIX, which take a word after a command for their name. */
const POSIX_SHELLS = 'bash|zsh|ksh|mksh|dash|ash|sh';
/** Shells that read the files of a login before a command, with -l and -c. */
const LOGIN_SHELLS = `${POSIX_SHELLS}|fish`;

/**
 * The user's shell after the files of a login: /etc/profile, ~/.profile and what else it reads then. On Debian the first one
 * resets PATH, which in an image has the folders of CUDA and conda: those that it lost come back, in front. So a login is
 * a shell that reads these files, and the shell of the user in its place.
 */
function loginShell(tools: boolean): string {
  const afterwards = [
    'set -f; IFS=:; _berth_p=; for _berth_d in $BERTH_PATH; do case ":$PATH:" in *":$_berth_d:"*) ;; *) _berth_p="$_berth_p$_berth_d:";; esac; done; unset IFS',
    `case ":$PATH:" in *":${TOOLS_BIN}:"*) ;; *) PATH="$PATH:${TOOLS_BIN}:${TOOLS_APPLETS}";; esac`,
    'export PATH="$_berth_p$PATH"; unset BERTH_PATH SHLVL _berth_p _berth_d; exec "$SHELL"',
  ].join('; ');
  const sh = tools ? `${BUSYBOX} sh` : '/bin/sh';
  return `if case "\${SHELL##*/}" in ${LOGIN_SHELLS}) ;; *) false;; esac; then
  export BERTH_PATH="\${PATH%:${TOOLS_BIN}:${TOOLS_APPLETS}}"
  set -- "$SHELL" -l -c ${quote(`exec ${sh} -c '${afterwards}'`)}
else set -- "$SHELL"; fi
`;
}

const SCP_SERVER = /^scp (-\w+ )*-[tf] /;
const SFTP_SERVERS = [
  `${TOOLS_BIN}/sftp-server`,
  '/usr/lib/openssh/sftp-server',
  '/usr/libexec/openssh/sftp-server',
  '/usr/lib/ssh/sftp-server',
];

const FIND_SFTP_SERVER = `for _berth_e in ${SFTP_SERVERS.join(' ')}; do if [ -x "$_berth_e" ]; then break; fi; done\n`;

/** Makes a command the words that run it. `$0` is the bare name of the shell, as with sshd: messages begin with it. */
function commandWords(command: string): string {
  return `set -- "$SHELL" -c ${quote(command)}
case "\${SHELL##*/}" in ${POSIX_SHELLS}) set -- "$@" "\${SHELL##*/}";; esac
`;
}

/** What stands before the program, and the program as one simple command. */
function programOf(action: Action, tools: boolean): [before: string, program: string] {
  if (action.kind === 'program') return ['', action.argv.map((word) => quote(binary(word))).join(' ')];
  if (action.kind === 'sftp') return [FIND_SFTP_SERVER, '"$_berth_e"'];
  if (action.kind === 'shell') return [loginShell(tools), '"$@"'];
  const command = binary(action.command);
  // OpenSSH's scp refuses a user without an entry in /etc/passwd, so its server half always comes from the tools.
  const path = SCP_SERVER.test(command) ? `PATH="${TOOLS_BIN}:$PATH"\n` : '';
  return [`${path}${commandWords(command)}`, '"$@"'];
}

/**
 * Runs the program, says when it has ended, and reads on until the gateway closes stdin. When a process ends while bytes
 * are on their way to it, the kubelet resets the connection, and the exit status and the last output are lost: then
 * `ssh i head -1 <large-file` would fail. The traps keep a signal for the process group from ending this shell before the
 * program. The program does not inherit them, as it would inherit ignored signals. What this shell has to say, such as that
 * a signal ended the program, nobody asked for.
 */
function runAndDrain(line: string, endMarker: string, tools: boolean): string {
  const drain = tools ? `${BUSYBOX} cat >/dev/null` : 'cat >/dev/null || while read -r _berth_x; do :; done';
  return `trap : ALRM HUP INT QUIT TERM USR1 USR2
exec 9>&2 2>/dev/null
(exec ${line} 2>&9 9>&-)
_berth_r=$?
printf %s ${quote(endMarker)} >&9
${drain}
exit $_berth_r`;
}

/**
 * Waits for the size on its way, a second at most, and sets it where none came. To set it at once could undo a later size
 * that comes between the look and the word.
 */
function waitForSize({ columns, rows }: Terminal, sent: string, tools: boolean): string {
  const [stty, sleep] = tools ? [`${BUSYBOX} stty`, `${BUSYBOX} sleep`] : ['stty', 'sleep'];
  const size = `"$(${stty} size 2>/dev/null)"`;
  const before = sent === `${rows} ${columns}` ? "'0 0'" : `'0 0'|'${sent}'`;
  return `_berth_n=0
while case ${size} in ${before}) [ $_berth_n -lt 50 ];; *) false;; esac
do _berth_n=$((_berth_n+1)); ${sleep} 0.02; done
[ ${size} = '0 0' ] && ${stty} rows ${rows} cols ${columns}`;
}

export function sessionScript(launch: Launch, tools: boolean): Buffer {
  const { action, terminal } = launch;
  const env = [...launch.env, [SESSION_VARIABLE, launch.session] as const];
  if (terminal !== undefined) env.push(['TERM', terminal.term]);
  const lines = env.map(([name, value]) => `export ${name}=${quote(binary(value))}`);
  if (terminal !== undefined) {
    const [stty, tty] = tools ? [`${BUSYBOX} stty`, `${BUSYBOX} tty`] : ['stty', 'tty'];
    const { columns, rows, modes } = terminal;
    // By exec the size goes over the resize channel, and may arrive there after the program has asked for it. The direct
    // way begins with its size.
    if (launch.sentSize !== undefined && columns > 0 && rows > 0) {
      lines.push(waitForSize(terminal, launch.sentSize, tools));
    }
    if (modes.length > 0) lines.push(`${stty} ${modes.map(quote).join(' ')} 2>/dev/null`);
    if (launch.env.has('SSH_CONNECTION')) lines.push(`_berth_t=$(${tty} 2>/dev/null) && export SSH_TTY="$_berth_t"`);
  }
  const [before, program] = programOf(action, tools);
  // A program replaces the script where it can: it must lead the foreground of its terminal.
  const run =
    terminal !== undefined || launch.endMarker === undefined
      ? `exec ${program}`
      : runAndDrain(program, launch.endMarker, tools);
  return Buffer.from(`${lines.join('\n')}${ENVIRONMENT}${before}${run}`, 'latin1');
}
