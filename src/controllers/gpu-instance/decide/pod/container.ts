import { DIRECT_PORT } from '../../../../resources/pod/tools-volume.ts';
import { JUPYTER_LINE, JUPYTER_PORT, JUPYTER_PROGRAMS, JUPYTER_TOKEN_PORT } from '../../../../resources/pod/jupyter.ts';
import { MONITOR_PORT } from '../../../../resources/pod/monitor.ts';
import { TOOLS_APPLETS, TOOLS_BIN } from '../../../../resources/pod/tools-volume.ts';
import type { Settings } from '../settings.ts';

/** Where the disk is mounted. */
export const WORKSPACE = '/workspace';

// A user may have variables of any name, and the programs here get them: those of the scripts begin with _berth_.
//
// $1 is the onStart script. The shell of the image runs it where there is one, as its author expects. Its output goes
// to the log of the pod.
const RUN_ON_START = `PATH="$PATH:${TOOLS_APPLETS}"; export PATH
cd ${WORKSPACE} 2>/dev/null || cd /
if [ -n "$1" ]; then
  _berth_shell=${TOOLS_BIN}/busybox
  for _berth_candidate in /bin/bash /usr/bin/bash /bin/sh; do
    if [ -x "$_berth_candidate" ]; then _berth_shell="$_berth_candidate"; break; fi
  done
  if [ "$_berth_shell" = ${TOOLS_BIN}/busybox ]; then "$_berth_shell" sh -c -- "$1" & else "$_berth_shell" -c -- "$1" & fi
  _berth_onstart=$!
fi
`;
// Jupyter starts when the image has it, or as soon as onStart has installed it. Its token is generated here, stays the
// same after each start, and stands in no object: the owner reads the file, and Berth asks on the loopback.
// JUPYTER_TOKEN in the environment of the instance wins. Jupyter does not print a token that it was given.
const RUN_JUPYTER = `(
  umask 077
  _berth_folder=${WORKSPACE}/.berth-jupyter
  mkdir -p "$_berth_folder" 2>/dev/null || { _berth_folder=/tmp/.berth-jupyter; mkdir -p "$_berth_folder"; }
  _berth_file="$_berth_folder/token"
  if [ -n "$JUPYTER_TOKEN" ]; then printf %s "$JUPYTER_TOKEN" >"$_berth_file"
  elif [ ! -s "$_berth_file" ]; then head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' >"$_berth_file"; fi
  export JUPYTER_TOKEN="$(cat "$_berth_file")"
  ${TOOLS_BIN}/busybox httpd -f -p 127.0.0.1:${JUPYTER_TOKEN_PORT} -h "$_berth_folder" &
  umask 022
  while :; do
    _berth_over=; kill -0 "$_berth_onstart" 2>/dev/null || _berth_over=1
    for _berth_program in ${JUPYTER_PROGRAMS.join(' ')}; do
      if command -v "$_berth_program" >/dev/null 2>&1; then
        "$_berth_program" --ip=0.0.0.0 --port=${JUPYTER_PORT} --no-browser --allow-root --ServerApp.root_dir=${WORKSPACE} 2>&1 |
          while IFS= read -r _berth_line; do printf '${JUPYTER_LINE}%s\\n' "$_berth_line"; done
        exit
      fi
    done
    if [ -n "$_berth_over" ]; then
      echo 'The image has no jupyter: choose one that has, or install jupyterlab in onStart.' >&2
      exit
    fi
    sleep 1
  done
) &
`;
// The exporter measures from inside, where the GPUs are. It starts again when it ends: the tenant may kill it, or memory
// may have been short.
const RUN_MONITOR = `(
  while :; do GOMAXPROCS=1 ${TOOLS_BIN}/monitor serve ${MONITOR_PORT} ${WORKSPACE} >/dev/null 2>&1; ${TOOLS_BIN}/busybox sleep 5; done
) &
`;
// Connections to ports come straight to the pod through this. It starts again too.
const RUN_PORTS = `(
  while :; do ${TOOLS_BIN}/direct ports ${DIRECT_PORT} >/dev/null 2>&1; ${TOOLS_BIN}/busybox sleep 5; done
) &
`;
// tini passes TERM to the whole process group. sleep ends on it at once, so a stop does not take the grace period.
const STAY_UP = `exec ${TOOLS_BIN}/busybox sleep 2147483647`;

function keepAlive({ runtype, ports }: Settings, monitored: boolean): string {
  const isJupyter = runtype === 'jupyter';
  const hasPorts = isJupyter || ports.length > 0;
  return [monitored && RUN_MONITOR, hasPorts && RUN_PORTS, RUN_ON_START, isJupyter && RUN_JUPYTER, STAY_UP]
    .filter((part) => part !== false)
    .join('');
}

/** `args` keeps the image's entrypoint. Else an init reaps what sessions leave behind, and a shell stays up. */
export function entrypointOf(settings: Settings, monitored: boolean): { command?: string[]; args?: string[] } {
  if (settings.runtype === 'args') {
    return {
      ...(settings.command.length > 0 && { command: [...settings.command] }),
      ...(settings.args.length > 0 && { args: [...settings.args] }),
    };
  }
  const shell = [`${TOOLS_BIN}/busybox`, 'sh', '-c', keepAlive(settings, monitored), 'berth', settings.onStart];
  return { command: [`${TOOLS_BIN}/tini`, '-g', '--', ...shell] };
}
