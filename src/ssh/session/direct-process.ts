import { constants } from 'node:os';
import type { DirectLink } from '../../direct/direct-link.ts';
import type { PodProcess } from './pod-process.ts';
import { DIRECT_LAUNCHER, encodeLine, sessionScript, type Launch } from './session-script.ts';

/**
 * Starts what a session asks for through the link. `hangUp` ends the session of the pid that it gets when the link was
 * lost: the helper is gone then, and its programs may not be. Rejects when the helper cannot start it.
 */
export async function startOnLink(
  link: DirectLink,
  launch: Omit<Launch, 'endMarker'>,
  hangUp: (pid: number) => Promise<void>,
): Promise<PodProcess> {
  const { terminal } = launch;
  const script = encodeLine(sessionScript({ ...launch, endMarker: undefined }, true));
  const channel = link.open({
    argv: DIRECT_LAUNCHER,
    script,
    ...(terminal && { terminal: { columns: terminal.columns, rows: terminal.rows } }),
  });
  const pid = await channel.opened;
  const { stdin, stdout, stderr, exit } = channel;
  return {
    way: 'direct',
    stdin,
    stdout,
    stderr,
    exit,
    programEnded: channel.inputOver,
    buffered: () => stdin.writableLength + stdout.readableLength + stderr.readableLength,
    resize: (columns, rows) => channel.resize(columns, rows),
    close: () => channel.close(),
    signal: async (name) => {
      const numbers: Record<string, number> = constants.signals;
      const number = numbers[`SIG${name}`];
      if (number !== undefined) channel.signal(number);
    },
    hangUp: async () => {
      channel.close();
      if (link.wasLost) await hangUp(pid);
    },
  };
}
