import { BUSYBOX, SESSION_VARIABLE } from './session-script.ts';

// RFC 4254 section 6.10. Others are refused: the name becomes part of a command.
const SIGNALS = new Set(
  'ABRT ALRM CONT FPE HUP ILL INT KILL PIPE QUIT SEGV STOP TERM TSTP TTIN TTOU USR1 USR2 WINCH'.split(' '),
);

/** The signal's name as `kill` takes it; undefined for any other text. */
export function signalName(text: string): string | undefined {
  const [name = ''] = text.replace(/^SIG/, '').split('@', 1);
  return SIGNALS.has(name) ? name : undefined;
}

/**
 * Sets _o to the leader of a process's session when it is the leader that Berth started: of the pid, or, without one, the
 * one that the container runtime started, whose parent is outside of the container. A daemon that inherited our variable
 * may lead a session too.
 */
function leaderFunction(pid: number | undefined): string {
  const runtimes = `read -r _t 2>/dev/null </proc/$_o/stat || return 1; set -- \${_t##*) }; [ "$2" = 0 ] && [ "$4" = "$_o" ]`;
  return `
_leader() {
  read -r _t 2>/dev/null </proc/$1/stat || return 1; set -- \${_t##*) }; _o=$4
  ${pid === undefined ? runtimes : `[ "$_o" = ${pid} ]`}
}`;
}

export interface HangUp {
  tools: boolean;
  terminal: boolean;
  /** The leader of a session of the direct way, which may be any program. */
  leader?: number | undefined;
}

/** Whether _p holds stdout or stderr of the session, as the leader has them, or as it had them while it lived. */
const WRITES = `
_is_stream() { [ -p $1 ] || [ -S $1 ]; }
_writes() {
  _s=/proc/$_root/fd
  if _is_stream $_s/1 || _is_stream $_s/2; then
    for _f in /proc/$_p/fd/1 /proc/$_p/fd/2; do
      _is_stream $_f || continue
      [ $_f -ef $_s/1 ] || [ $_f -ef $_s/2 ] && return 0
    done
    return 1
  fi
  case "$_w " in *" $_p "*) ;; *) return 1;; esac
}`;

/**
 * Ends a session: its processes, which our variable marks, get HUP, two seconds later TERM, and then KILL. Programs that
 * were told to outlive it do: setsid and tmux make a session of their own, and a process that ignores HUP (nohup) gets no
 * further signal. sshd ends only what has a terminal, and closes the streams of other programs. So a program without a
 * terminal is ended only where it writes to these: servers of editors run under nohup, and Node resets HUP. Our shell,
 * which leads a session by exec, always ends.
 */
export function hangUpScript(session: string, { tools, terminal, leader }: HangUp): string {
  const grep = tools ? `${BUSYBOX} grep` : 'grep';
  const sleep = tools ? `${BUSYBOX} sleep` : 'sleep';
  const ours = leader === undefined ? '[ $_p = $_root ] || ' : '';
  return `${leaderFunction(leader)}${WRITES}
_pids() {
  _l=; for _f in $(${grep} -ls ${SESSION_VARIABLE}=${session} /proc/[0-9]*/environ); do
    _p=\${_f#/proc/}; _l="$_l \${_p%/environ}"
  done
  for _p in $_l; do _leader $_p && _root=$_o; done
  _m=; [ -z "$_root" ] && return
  for _d in /proc/[0-9]*; do
    read -r _t <$_d/stat 2>/dev/null || continue; set -- \${_t##*) }
    [ "$4" = "$_root" ] && [ "$1" != Z ] || continue
    _p=\${_d#/proc/}
    ${terminal ? '' : `${ours}_writes || continue`}
    _m="$_m $_p"
  done
  _w=$_m
}
_mortal() {
  _x=; for _p in $_m; do
    while read -r _k _v; do case $_k in SigIgn:) case $_v in *[13579bdf]) ;; *) _x="$_x $_p";; esac; break;; esac; done </proc/$_p/status 2>/dev/null
  done
}
_root=; _w=; _pids; [ -z "$_m" ] || kill -HUP $_m 2>/dev/null
for _g in TERM KILL; do
  _i=0; while [ $_i -lt 10 ]; do _pids; _mortal; [ -z "$_x" ] && exit 0; ${sleep} 0.2; _i=$((_i+1)); done
  kill -$_g $_x 2>/dev/null
done
exit 0`;
}

/** Sends a signal to the process group of a session's leader, as sshd does for a signal request. */
export function signalScript(session: string, signal: string, tools: boolean): string {
  const grep = tools ? `${BUSYBOX} grep` : 'grep';
  return `${leaderFunction(undefined)}
for _f in $(${grep} -ls ${SESSION_VARIABLE}=${session} /proc/[0-9]*/environ); do
  _p=\${_f#/proc/}; _leader \${_p%/environ} && kill -${signal} -- -$_o && break
done
exit 0`;
}
