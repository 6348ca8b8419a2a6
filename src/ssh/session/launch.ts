import { TOOLS_APPLETS, TOOLS_BIN } from '../../resources/pod/tools-volume.ts';

const BUSYBOX = `${TOOLS_BIN}/busybox`;
/** What the terminal launcher prints when it is ready to read the script without echo. */
export const READY_BYTE = 0x01;
/** Environment variable by which a session's processes are found again. */
export const SESSION_VARIABLE = 'BERTH_SESSION';

export interface Terminal {
  term: string;
  columns: number;
  rows: number;
}

export type Action =
  | { kind: 'shell' }
  | { kind: 'command'; command: string }
  | { kind: 'program'; argv: readonly string[] }
  | { kind: 'sftp' };

export interface Launch {
  session: string;
  /** What the script says on stderr when the program has ended; unknown to everybody else. Not used by terminals. */
  farewell: string;
  action: Action;
  terminal: Terminal | undefined;
  env: ReadonlyMap<string, string>;
}

/**
 * The command line of the exec call. What the user asked for is not in it: it would stand in the API server's audit log.
 * The launcher reads one line from its stdin, byte by byte as POSIX `read` does, and the rest is the user's.
 */
export function launcher(options: { tools: boolean; tty: boolean }): readonly string[] {
  const shell = options.tools ? [BUSYBOX, 'sh'] : ['/bin/sh'];
  const stty = options.tools ? `${BUSYBOX} stty` : 'stty';
  const read = 'IFS= read -r _b && eval "$(printf %b "$_b")"';
  if (!options.tty) return [...shell, '-c', read];
  return [
    ...shell,
    '-c',
    `_s=$(${stty} -g); ${stty} raw -echo; printf '\\001'; IFS= read -r _b; ${stty} "$_s"; eval "$(printf %b "$_b")"`,
  ];
}

/** One line that `printf %b` turns back into the text's UTF-8 bytes, in dash, bash and busybox alike. */
export function encodeLine(text: string): string {
  let line = '';
  for (const byte of Buffer.from(text)) {
    const plain = byte >= 0x20 && byte < 0x7f && byte !== 0x5c;
    line += plain ? String.fromCharCode(byte) : `\\0${byte.toString(8).padStart(3, '0')}`;
  }
  return `${line}\n`;
}

/** A word of a POSIX shell that stands for exactly this text. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/**
 * Gives the session a sane HOME, USER, SHELL and PATH and keeps everything else as the container has it: no login shell
 * and no /etc/profile, which would reset PATH and with it CUDA's and conda's folders. Shell built-ins only, because the
 * image may have no programs. The user's own shell wins; accounts of images often say nologin, which is no shell.
 */
const IDENTITY = `
_u=0; while read -r _k _v _r; do case $_k in Uid:) _u=$_v; break;; esac; done </proc/self/status
_n= _h= _s=
if [ -r /etc/passwd ]; then
  while IFS=: read -r _a _p _i _g _c _d _e; do
    if [ "$_i" = "$_u" ]; then _n=$_a _h=$_d _s=$_e; break; fi
  done </etc/passwd
fi
if [ -z "$HOME" ] || [ "$HOME" = / ] || [ ! -w "$HOME" ]; then
  for _d in "$_h" /workspace /tmp /; do if [ -n "$_d" ] && [ "$_d" != / ] && [ -d "$_d" ] && [ -w "$_d" ]; then break; fi; done
  export HOME="$_d"
fi
export USER="\${_n:-\${USER:-$_u}}"
export LOGNAME="$USER"
export PATH="\${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}:${TOOLS_BIN}:${TOOLS_APPLETS}"
for _e in "$_s" "$SHELL" /bin/bash /usr/bin/bash /bin/sh ${TOOLS_BIN}/sh; do
  case $_e in */nologin|*/false|*/sync|*/git-shell|'') continue;; esac
  if [ -x "$_e" ]; then break; fi
done
export SHELL="$_e"
cd "$HOME" 2>/dev/null || cd /
`;

const SCP_SERVER = /^scp (-\w+ )*-[tf] /;
const SFTP_SERVERS = [
  `${TOOLS_BIN}/sftp-server`,
  '/usr/lib/openssh/sftp-server',
  '/usr/libexec/openssh/sftp-server',
  '/usr/lib/ssh/sftp-server',
];

function actionLine(action: Action): string {
  if (action.kind === 'shell') return '"$SHELL"';
  if (action.kind === 'program') return action.argv.map(quote).join(' ');
  if (action.kind === 'sftp') {
    const search = `for _e in ${SFTP_SERVERS.join(' ')}; do if [ -x "$_e" ]; then break; fi; done`;
    return `${search}\n"$_e"`;
  }
  return `"$SHELL" -c ${quote(action.command)}`;
}

/**
 * Runs the program and keeps its stdin open after its end, until the gateway has heard of that end and has closed the
 * stream. A kubelet whose process ends while bytes are under way to it resets the connection, and the exit status and
 * the last output are lost with it: `ssh i head -1 <large-file` would fail. The traps keep a signal for the process group
 * from ending this shell before the program; unlike ignoring, they are not inherited.
 */
function attended(line: string, farewell: string, tools: boolean): string {
  const drain = tools ? `${BUSYBOX} cat >/dev/null` : 'cat >/dev/null || while read -r _x; do :; done';
  return `trap : ALRM INT QUIT TERM USR1 USR2
${line}
_r=$?
printf %s ${quote(farewell)} >&2
{ ${drain}; } 2>/dev/null
exit $_r`;
}

/** The script that the launcher runs. */
export function sessionScript(launch: Launch, tools: boolean): string {
  const { action, terminal } = launch;
  const env = [...launch.env, [SESSION_VARIABLE, launch.session] as const];
  if (terminal !== undefined) env.push(['TERM', terminal.term]);
  const lines = env.map(([name, value]) => `export ${name}=${quote(value)}`);
  if (terminal !== undefined && terminal.columns > 0 && terminal.rows > 0) {
    // The size also travels on the resize channel, but may arrive after the program has asked for it.
    const stty = tools ? `${BUSYBOX} stty` : 'stty';
    lines.push(`${stty} rows ${terminal.rows} cols ${terminal.columns}`);
  }
  // OpenSSH's scp refuses a user without an entry in /etc/passwd, so the server half is always ours.
  const ownScp = action.kind === 'command' && SCP_SERVER.test(action.command);
  const path = ownScp ? `PATH="${TOOLS_BIN}:$PATH"\n` : '';
  const line = actionLine(action);
  const program = terminal === undefined ? attended(line, launch.farewell, tools) : execLast(line);
  return `${lines.join('\n')}${IDENTITY}${path}${program}`;
}

/** A terminal's program replaces the script, so that it leads the terminal's foreground. */
function execLast(line: string): string {
  const start = line.lastIndexOf('\n') + 1;
  return `${line.slice(0, start)}exec ${line.slice(start)}`;
}

/**
 * Sets _o to the leader of a process's session when that is a process of ours: one that the container runtime started,
 * whose parent is outside. A daemon that inherited our variable leads a session too, but has a parent inside.
 */
const LEADER = `
_leader() {
  read -r _t 2>/dev/null </proc/$1/stat || return 1; set -- \${_t##*) }; _o=$4
  read -r _t 2>/dev/null </proc/$_o/stat || return 1; set -- \${_t##*) }; [ "$2" = 0 ] && [ "$4" = "$_o" ]
}`;

/**
 * Ends a session from outside: the processes of the session in which our variable is found get HUP, after a grace
 * TERM, then KILL. What was told to outlive its terminal does: another session (setsid, tmux) is not ours, and a process
 * that ignores HUP (nohup) gets nothing more.
 */
export function hangUpScript(session: string, tools: boolean): string {
  const grep = tools ? `${BUSYBOX} grep` : 'grep';
  const sleep = tools ? `${BUSYBOX} sleep` : 'sleep';
  return `${LEADER}
_pids() {
  _l=; for _f in $(${grep} -ls ${SESSION_VARIABLE}=${session} /proc/[0-9]*/environ); do
    _p=\${_f#/proc/}; _l="$_l \${_p%/environ}"
  done
  for _p in $_l; do _leader $_p && _root=$_o; done
  _m=; [ -z "$_root" ] && return
  for _f in /proc/[0-9]*; do
    read -r _t <$_f/stat 2>/dev/null || continue; set -- \${_t##*) }
    [ "$4" = "$_root" ] && [ "$1" != Z ] && _m="$_m \${_f#/proc/}"
  done
}
_mortal() {
  _x=; for _p in $_m; do
    while read -r _k _v; do case $_k in SigIgn:) case $_v in *[13579bdf]) ;; *) _x="$_x $_p";; esac; break;; esac; done </proc/$_p/status 2>/dev/null
  done
}
_root=; _pids; [ -z "$_m" ] || kill -HUP $_m 2>/dev/null
for _g in TERM KILL; do
  _i=0; while [ $_i -lt 10 ]; do _pids; _mortal; [ -z "$_x" ] && exit 0; ${sleep} 0.2; _i=$((_i+1)); done
  kill -$_g $_x 2>/dev/null
done
exit 0`;
}

/** Sends a signal to the process group of a session's leader, as sshd does for a signal request. */
export function signalScript(session: string, signal: string, tools: boolean): string {
  const grep = tools ? `${BUSYBOX} grep` : 'grep';
  return `${LEADER}
for _f in $(${grep} -ls ${SESSION_VARIABLE}=${session} /proc/[0-9]*/environ); do
  _p=\${_f#/proc/}; _leader \${_p%/environ} && kill -${signal} -- -$_o && break
done
exit 0`;
}
