import type { Runtype } from '../../resources/instance-template.ts';
import { TOOLS_APPLETS, TOOLS_BIN } from '../../resources/tools-volume.ts';
import type { Settings } from './settings.ts';

/** Where the disk is mounted. */
export const WORKSPACE = '/workspace';
/** Port of the Jupyter server, as clients of the field expect it. */
export const JUPYTER_PORT = 8080;

// $1 is the onStart script. The image's own shell runs it when there is one, for its PATH and its habits; its output
// goes to the log of the pod.
const RUN_ON_START = `PATH="$PATH:${TOOLS_APPLETS}"; export PATH
cd ${WORKSPACE} 2>/dev/null || cd /
if [ -n "$1" ]; then
  shell=${TOOLS_BIN}/busybox
  for candidate in /bin/bash /usr/bin/bash /bin/sh; do
    if [ -x "$candidate" ]; then shell="$candidate"; break; fi
  done
  if [ "$shell" = ${TOOLS_BIN}/busybox ]; then "$shell" sh -c "$1" & else "$shell" -c "$1" & fi
fi
`;
const RUN_JUPYTER = `if command -v jupyter >/dev/null 2>&1; then
  jupyter lab --ip=0.0.0.0 --port=${JUPYTER_PORT} --no-browser --allow-root --ServerApp.root_dir=${WORKSPACE} &
else
  echo 'The image has no jupyter: choose one that has, or install jupyterlab in onStart.' >&2
fi
`;
// sleep ends on the TERM that tini passes to the whole group, so stopping takes no grace period.
const STAY_UP = `exec ${TOOLS_BIN}/busybox sleep 2147483647`;

function keepAlive(runtype: Exclude<Runtype, 'args'>): string {
  return RUN_ON_START + (runtype === 'jupyter' ? RUN_JUPYTER : '') + STAY_UP;
}

/**
 * Entrypoint of the main container. `ssh` and `jupyter` replace the image's by an init that reaps whatever sessions leave
 * behind and a shell that stays up; `args` keeps it.
 */
export function entrypointOf(settings: Settings): { command?: string[]; args?: string[] } {
  if (settings.runtype === 'args') {
    return {
      ...(settings.command.length > 0 && { command: [...settings.command] }),
      ...(settings.args.length > 0 && { args: [...settings.args] }),
    };
  }
  const shell = [`${TOOLS_BIN}/busybox`, 'sh', '-c', keepAlive(settings.runtype), 'berth', settings.onStart];
  return { command: [`${TOOLS_BIN}/tini`, '-g', '--', ...shell] };
}
