import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';

export interface ClientResult {
  /** Exit status; null when a signal ended the client. */
  code: number | null;
  stdout: Buffer;
  stderr: string;
}

export interface SshCall {
  /** Options of ssh itself, before the destination. */
  flags?: readonly string[];
  input?: string | Buffer;
}

/** OpenSSH's own programs against one gateway. */
export interface SshClient {
  /** Runs a command, or a shell when it is empty, and gives it the input and its end. */
  ssh(instance: string, command: string, call?: SshCall): Promise<ClientResult>;
  /** The same, left running. */
  start(instance: string, command: string, flags?: readonly string[]): ChildProcessWithoutNullStreams;
  /** Any other program that takes -F: scp, sftp. */
  run(program: string, args: readonly string[], input?: string | Buffer): Promise<ClientResult>;
}

export function finished(child: ChildProcessWithoutNullStreams, input?: string | Buffer): Promise<ClientResult> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let stderr = '';
    child.stdout.on('data', (part: Buffer) => parts.push(part));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.stdin.on('error', () => undefined);
    child.stdin.end(input ?? '');
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout: Buffer.concat(parts), stderr }));
  });
}

export function sshClient(config: string): SshClient {
  const start: SshClient['start'] = (instance, command, flags = []) =>
    spawn('ssh', ['-F', config, ...flags, `${instance}@127.0.0.1`, ...(command === '' ? [] : [command])]);
  return {
    start,
    ssh: (instance, command, call = {}) => finished(start(instance, command, call.flags), call.input),
    run: (program, args, input) => finished(spawn(program, ['-F', config, ...args]), input),
  };
}
