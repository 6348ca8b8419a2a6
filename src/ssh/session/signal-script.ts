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

/**
 * Ends a session: its processes, which our variable marks, get HUP, two seconds later TERM, and then KILL. Programs that
 * were told to outlive their terminal do: setsid and tmux make a session of their own, and a process that ignores HUP
 * (nohup) gets no further signal.
 */
export function hangUpScript(session: string, tools: boolean, leader?: number): string {
  const grep = tools ? `${BUSYBOX} grep` : 'grep';
  const sleep = tools ? `${BUSYBOX} sleep` : 'sleep';
  return `${leaderFunction(leader)}
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
  return `${leaderFunction(undefined)}
for _f in $(${grep} -ls ${SESSION_VARIABLE}=${session} /proc/[0-9]*/environ); do
  _p=\${_f#/proc/}; _leader \${_p%/environ} && kill -${signal} -- -$_o && break
done
exit 0`;
}
