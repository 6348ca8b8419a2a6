import { pipeline } from 'node:stream/promises';
import type { ExecExit } from '../../kube/streams/exec.ts';
import type { SessionKind } from '../audit.ts';
import { plainAddress } from '../../lib/client-network.ts';
import { instanceOf, type LiveConnection } from '../connection.ts';
import { permits } from '../login/certificate.ts';
import type { ChannelOutput } from '../ssh2/channel-output.ts';
import type { ServerChannel, Session } from '../ssh2/protocol.ts';
import type { Window } from '../ssh2/windows.ts';
import { exitStatusOf, NO_STATUS, type ExitStatus } from './exit-status.ts';
import { type PodProcess, startProgram } from './pod-process.ts';
import { serveChannel } from './serve-channel.ts';
import { SESSION_VARIABLE, type Action, type Terminal } from './session-script.ts';
import { signalName } from './signal-script.ts';
import { sttyArguments } from './terminal-modes.ts';

/** As with sshd (its session.c). */
const MAX_ENV = 129;
/** Bytes of all variables of a session: the helper of the direct way takes them and a command in one frame, escaped. */
const MAX_ENV_LENGTH = 256 * 1024;
/** Bytes of one argument or variable that Linux takes (MAX_ARG_STRLEN, with its NUL). */
const MAX_ARGUMENT = 128 * 1024 - 1;
/** Of a variable or a terminal. */
const MAX_NAME_LENGTH = 256;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** The script of a session needs them. */
const OURS: ReadonlySet<string> = new Set([SESSION_VARIABLE, 'IFS']);
const VARIABLES = `a variable of your client was not set: a session takes ${MAX_ENV} of together at most ${MAX_ENV_LENGTH} bytes, of which one has at most ${MAX_ARGUMENT} with its name, and names of letters, digits and _ other than IFS.`;
const TERM = `there is no terminal: its kind (TERM) has more than ${MAX_NAME_LENGTH} bytes.`;
const AGENT =
  'agent forwarding (-A) is not offered: any root user in the instance could sign with your keys. Use a key that opens one repository, or push to the instance from your machine.';
const X11 = 'X11 forwarding (-X) is not offered. Forward a port of a display server in the instance: ssh -L.';
const NO_TERMINAL = 'there is no terminal: your certificate does not permit one.';
const NO_INPUT = Buffer.alloc(0);

/** What sshd answers when it cannot start the shell. */
const NOT_STARTED = 1;

/** Why no program can get a command. */
function refusalOfCommand(command: string | Buffer): string | undefined {
  if (command.includes('\0')) return 'the command has a NUL byte, which no program can get.';
  if (command.length <= MAX_ARGUMENT) return undefined;
  return `the command has ${command.length} bytes, and Linux takes at most ${MAX_ARGUMENT}. Put it into a file, and run that, or send it to a shell: ssh HOST sh <FILE.`;
}

function flushed(output: ChannelOutput, text?: string): Promise<void> {
  return new Promise((resolve) => {
    output.stderr.write(text ?? NO_INPUT, () => output.stdout.write(NO_INPUT, () => resolve()));
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** One session channel: the requests before the program, the program, and the requests while it runs. */
export class ProgramSession {
  readonly #connection: LiveConnection;
  readonly #ended = new AbortController();
  readonly #env = new Map<string, Buffer>();
  #envLength = 0;
  #terminal: Terminal | undefined;
  #process: PodProcess | undefined;
  /** The instance should run, and the program was not started. */
  #isUnreachable = false;
  /** Resolves when the line that says why the session is cut has been sent. */
  #said: Promise<unknown> = Promise.resolve();

  constructor(connection: LiveConnection) {
    this.#connection = connection;
  }

  listen(session: Session): void {
    const { notices } = this.#connection;
    const end = (): void => this.#ended.abort();
    this.#ended.signal.addEventListener('abort', () => (this.#connection.variables -= this.#envLength));
    this.#connection.gone.addEventListener('abort', end, { signal: this.#ended.signal });
    // The channel's own `close` would come late: ssh2 holds it back until the input was read, which a program may never do.
    session.on('close', end);
    // want-reply is false for most clients, and ssh2 passes no functions then.
    session.on('env', (accept, reject, { key }) => (this.#setEnv(key, this.#connection.bytes()) ? accept : reject)?.());
    session.on('pty', (accept, reject, info) => (this.#setTerminal(info) ? accept : reject)?.());
    session.on('window-change', (accept, _reject, { cols: columns, rows }) => {
      // In place: the program may be starting with this terminal.
      if (this.#terminal !== undefined) Object.assign(this.#terminal, { columns, rows });
      this.#process?.resize(columns, rows);
      accept?.();
    });
    session.on('auth-agent', (_accept, reject) => {
      notices.add(AGENT);
      reject?.();
    });
    session.on('x11', (_accept, reject) => {
      notices.add(X11);
      reject?.();
    });
    session.on('signal', (accept, reject, { name }) => (this.#signal(name) ? accept : reject)?.());
    session.on('shell', (accept) => this.#begin('shell', { kind: 'shell' }, accept));
    session.on('exec', (accept) => {
      this.#begin('command', { kind: 'command', command: this.#connection.bytes() }, accept);
    });
    session.on('subsystem', (accept, reject, { name }) => {
      if (name === 'sftp') this.#begin('sftp', { kind: 'sftp' }, accept);
      else reject();
    });
  }

  #setEnv(name: string, value: Buffer): boolean {
    const length = name.length + 1 + value.length;
    const isFree = this.#env.size < MAX_ENV && this.#envLength + length <= MAX_ENV_LENGTH;
    const fits = isFree && length <= MAX_ARGUMENT && !value.includes(0);
    const isAllowed = name.length <= MAX_NAME_LENGTH && ENV_NAME.test(name) && !OURS.has(name);
    if (!fits || !isAllowed) {
      this.#connection.notices.add(VARIABLES);
      return false;
    }
    this.#env.set(name, value);
    this.#envLength += length;
    this.#connection.variables += length;
    return true;
  }

  #setTerminal(info: { term?: string; cols: number; rows: number }): boolean {
    const { term = '', cols: columns, rows } = info;
    const { key, bytes, notices } = this.#connection;
    const isPermitted = permits(key, 'permit-pty');
    const refusal = !isPermitted ? NO_TERMINAL : term.length > MAX_NAME_LENGTH ? TERM : undefined;
    if (refusal !== undefined) {
      notices.add(refusal);
      return false;
    }
    this.#terminal = { term: term === '' ? 'xterm' : term, columns, rows, modes: sttyArguments(bytes()) };
    return true;
  }

  #signal(text: string): boolean {
    const name = signalName(text);
    if (name === undefined || this.#process === undefined) return false;
    void this.#process.signal(name);
    return true;
  }

  #begin(kind: SessionKind, action: Action, accept: () => ServerChannel): void {
    // At once: ssh2 does not accept after the client's EOF, which may follow immediately.
    const channel = accept();
    if (channel === undefined) return;
    channel.on('error', () => this.#ended.abort());
    this.#serve(channel, kind, action).catch((error: unknown) => {
      const { gateway, id } = this.#connection;
      gateway.log.error({ connection: id, err: error }, 'Session failed');
      channel.close();
    });
  }

  #serve(channel: ServerChannel, kind: SessionKind, action: Action): Promise<void> {
    return serveChannel(this.#connection, channel, {
      kind,
      open: (output) => ({
        cut: async (message) => {
          this.#said = output.say(this.#line(message)).then(() => channel.exit(NO_STATUS));
          this.#ended.abort();
          await this.#said;
        },
        buffered: () => channel.readableLength + output.buffered + (this.#process?.buffered() ?? 0),
      }),
      serve: async (output, window) => {
        for (const notice of this.#connection.notices.take()) output.stderr.write(this.#line(notice));
        const status = await this.#runProgram(channel, output, window, action);
        await this.#report(channel, output, status);
        return { status: status.code, way: this.#isUnreachable ? 'unreachable' : this.#process?.way };
      },
    });
  }

  async #runProgram(
    channel: ServerChannel,
    output: ChannelOutput,
    window: Window,
    action: Action,
  ): Promise<ExitStatus> {
    const process = await this.#start(action);
    if ('code' in process) return process;
    this.#process = process;
    // The window may have changed while the program was started.
    if (this.#terminal !== undefined) process.resize(this.#terminal.columns, this.#terminal.rows);
    channel.on('data', (chunk: Buffer) => window.took(chunk.length));
    const exit = await this.#passBytes(channel, output, process);
    // The client is gone or the stream to the pod is: the program may still run.
    if (exit.kind === 'lost') void process.hangUp();
    return exitStatusOf(exit);
  }

  async #start(action: Action): Promise<PodProcess | ExitStatus> {
    const { gateway, login, id } = this.#connection;
    const instance = instanceOf(this.#connection);
    if (instance === undefined) return { code: NO_STATUS, message: `instance ${login.instance} is gone.` };
    if (instance.target === undefined) {
      return { code: NO_STATUS, message: `instance ${instance.name} is ${instance.condition}` };
    }
    const unfit = action.kind === 'command' ? refusalOfCommand(action.command) : undefined;
    if (unfit !== undefined) return { code: NOT_STARTED, message: unfit };
    const launch = {
      action,
      terminal: this.#terminal,
      env: new Map<string, string | Buffer>([...this.#env, ...this.#addresses()]),
    };
    try {
      const ways = { endpoint: gateway.endpoint, direct: this.#connection.direct, turn: this.#connection.turn };
      return await startProgram(ways, instance.target, launch, this.#ended.signal);
    } catch (error) {
      gateway.log.warn({ connection: id, err: error }, 'Session was not started');
      this.#isUnreachable = !this.#ended.signal.aborted;
      const reason = error instanceof Error ? error.message : 'unknown';
      return { code: NO_STATUS, message: `instance ${instance.name} cannot be reached: ${reason}` };
    }
  }

  /** What tells programs that they are remote, as sshd does (its manual, ENVIRONMENT). */
  #addresses(): [string, string][] {
    const { remoteAddress, remotePort, localAddress, localPort } = this.#connection.socket;
    const [client, server] = [plainAddress(remoteAddress), plainAddress(localAddress)];
    return [
      ['SSH_CLIENT', `${client} ${remotePort} ${localPort}`],
      ['SSH_CONNECTION', `${client} ${remotePort} ${server} ${localPort}`],
    ];
  }

  /** Passes bytes both ways until the program has ended or the session is. */
  async #passBytes(channel: ServerChannel, output: ChannelOutput, process: PodProcess): Promise<ExecExit> {
    const { signal } = this.#ended;
    // The end of input closes a pipe, but would hang a terminal up; sshd leaves a terminal open too.
    channel.pipe(process.stdin, { end: this.#terminal === undefined });
    void process.programEnded.then(() => {
      channel.unpipe(process.stdin);
      channel.resume();
      return process.stdin.end();
    });
    await Promise.allSettled([
      pipeline(process.stdout, output.stdout, { end: false, signal }),
      pipeline(process.stderr, output.stderr, { end: false, signal }),
    ]);
    if (signal.aborted) return { kind: 'lost', message: 'The client is gone.' };
    return await process.exit;
  }

  /** Sends the exit status after the last output, or waits until the line is sent that says why the session is cut. */
  async #report(channel: ServerChannel, output: ChannelOutput, { code, message }: ExitStatus): Promise<void> {
    const { signal } = this.#ended;
    if (!signal.aborted) {
      const text = message === undefined ? undefined : this.#line(message);
      await Promise.race([flushed(output, text), aborted(signal)]);
      channel.exit(code);
    }
    await Promise.race([this.#said, aborted(this.#connection.gone)]);
  }

  /** In raw mode a terminal does not return the carriage by itself. */
  #line(message: string): string {
    return this.#terminal === undefined ? `berth: ${message}\n` : `\r\nberth: ${message}\r\n`;
  }
}
