import type { ExecExit } from '../../kube/streams/exec.ts';

/** What the client gets at the end of a session. */
export interface ExitStatus {
  code: number;
  /** A line for stderr, when there is something to say. */
  message?: string;
}

/** What ssh itself reports when a session did not run to its end. */
export const NO_STATUS = 255;
const COMMAND_NOT_FOUND = 127;

/**
 * The exit status for the end of the remote process. The container runtime reports 128 + its number for a signal, and
 * nothing finer, as a shell would show it. When there is no status the client gets 255 and a line that says so, never 0.
 */
export function exitStatusOf(exit: ExecExit): ExitStatus {
  if (exit.kind === 'exited') return { code: exit.code };
  if (exit.kind === 'lost') {
    return { code: NO_STATUS, message: `the connection to the instance was lost. ${exit.message}` };
  }
  if (/executable file not found|no such file or directory/i.test(exit.message)) {
    return {
      code: COMMAND_NOT_FOUND,
      message: 'the image has no /bin/sh and the instance carries no tools: start it with runtype ssh.',
    };
  }
  return { code: NO_STATUS, message: `the session could not be started: ${exit.message}` };
}
