import type { ExecExit } from '../../kube/streams/exec.ts';

/** What the client is told at the end of a session. */
export interface SessionEnd {
  code: number;
  /** A line for stderr, when there is something to say. */
  message?: string;
}

/** What ssh itself reports when a session did not run to its end. */
export const NO_STATUS = 255;
const COMMAND_NOT_FOUND = 127;

/**
 * Maps the end of the remote process. A process that a signal ended has 128 + its number, as a shell would show it: the
 * container runtime reports nothing finer. No status at all is 255 with a line that says so, never 0.
 */
export function sessionEnd(exit: ExecExit): SessionEnd {
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

// RFC 4254 section 6.10; others are refused because the name becomes part of a command.
const SIGNALS = new Set(
  'ABRT ALRM CONT FPE HUP ILL INT KILL PIPE QUIT SEGV STOP TERM TSTP TTIN TTOU USR1 USR2 WINCH'.split(' '),
);

/** The signal name as `kill` takes it, or undefined when it is none. */
export function signalName(text: string): string | undefined {
  const name = text.replace(/^SIG/, '').replace(/@.*$/, '');
  return SIGNALS.has(name) ? name : undefined;
}
