import { randomUUID } from 'node:crypto';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Logger } from 'pino';
import type { WebSocket } from 'ws';
import type { Access, AccessEnded } from '../../access/access-watch.ts';
import type { Activity } from '../../access/activity.ts';
import type { PodTarget } from '../../access/pod-target.ts';
import type { Principal } from '../../access/principal.ts';
import { channelWrites } from '../../kube/streams/channel-writes.ts';
import type { StreamEndpoint } from '../../kube/streams/websocket.ts';
import type { BlockedPods } from '../../direct/blocked-pods.ts';
import type { Dial } from '../../direct/dial.ts';
import { type ByteTurns, PacedSource, type Turn } from '../../lib/byte-turns.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Portion } from '../../lib/shares.ts';
import type { AuditSink, Visitor } from '../audit.ts';
import { DirectWay } from '../direct-way.ts';
import type { InstanceDirectory } from '../directory.ts';
import { type ExitStatus, exitStatusOf, NO_STATUS } from '../session/exit-status.ts';
import { type PodProcess, startProgram } from '../session/pod-process.ts';
import type { Terminal as Screen } from '../session/session-script.ts';
import { ClientSocket } from './client-socket.ts';
import { CLOSE, RESIZE, SHOWN, STATUS, STDERR, STDIN, STDOUT, TOKEN } from '../../wire/terminal-frames.ts';
import { countOf, sizeOf, statusFrame } from './protocol.ts';

/** Who may open terminals: an API key, or a person whom the dashboard vouches for. */
export interface Callers {
  /** The caller that a token stands for; undefined when it is forged, over or revoked. */
  find(token: string): Promise<Principal | undefined>;
  /** Why the caller may not use instances now; undefined when it may. */
  refusal(caller: Principal): string | undefined;
  /** The caller's access to instances, which may have ended already. */
  open(caller: Principal): Access;
}

export interface TerminalDeps {
  endpoint: StreamEndpoint;
  /** Connects to the helpers of the direct way. */
  dial: Dial;
  blocked: BlockedPods;
  /** In which tenants pass bytes. */
  turns: ByteTurns;
  directory: InstanceDirectory;
  callers: Callers;
  audit: AuditSink;
  activity: Pick<Activity, 'began'>;
  clock: Clock;
  log: Logger;
}

/** What an accepted request opens. */
export interface Opening {
  caller: Principal;
  instance: string;
  instanceUid: string;
  target: PodTarget;
  screen: Screen;
  /** What to run without a terminal, in place of a shell on the screen. */
  command: string | undefined;
  /** Of the client, for the audit log. */
  address: string;
}

/** Bytes of output that wait for a frame. */
const HIGH_WATER = 64 * 1024;
/** Bytes that a client may have taken and not shown yet: a browser reads faster than it paints. */
const MOST_AHEAD = 512 * 1024;
/** Milliseconds before its end at which a person's next token is asked for, and between two questions. */
const ASK_BEFORE_MS = 10_000;
const ASK_AGAIN_MS = 5_000;
/** What a person reads fits the first window. */
const NO_WIDE_WINDOWS: Portion = { left: () => 0, change: () => undefined };

/** One terminal that a client has open: a login shell in an instance, as an SSH session with `-t` has it, or a command. */
export class Terminal {
  readonly #deps: TerminalDeps;
  readonly #opening: Opening;
  readonly #visitor: Visitor;
  readonly #client: ClientSocket;
  readonly #id = randomUUID();
  readonly #ended = new AbortController();
  #caller: Principal;
  #access: Access;
  #screen: Screen;
  #process: PodProcess | undefined;
  /** Why it is cut. */
  #reason: string | undefined;
  #isRenewing = false;
  /** Came while another one was checked. */
  #nextToken: string | undefined;
  #bytesIn = 0;
  #bytesOut = 0;
  /** What the client has shown of that; undefined for a client that does not say. */
  #shown: number | undefined;
  readonly #goOn: (() => void)[] = [];
  readonly #turn: Turn;
  readonly #source: PacedSource;
  /** Monotonic milliseconds. */
  #askedAt = -Infinity;

  constructor(deps: TerminalDeps, opening: Opening, socket: WebSocket) {
    this.#deps = deps;
    this.#opening = opening;
    const { caller, instance, instanceUid, address } = opening;
    const { namespace, keyId, name } = caller;
    this.#visitor = { namespace, instance, instanceUid, keyId, caller: name, address };
    this.#caller = caller;
    this.#access = this.#watched(caller);
    this.#screen = { ...opening.screen };
    this.#turn = deps.turns.of(namespace);
    this.#source = new PacedSource(this.#turn, () => this.#steer());
    this.#client = new ClientSocket(socket, {
      frame: (channel, bytes) => this.#onFrame(channel, bytes),
      closed: () => this.#ended.abort(),
    });
    // Until there is a program to give it to.
    this.#client.pause();
  }

  get namespace(): string {
    return this.#visitor.namespace;
  }

  /** Serves it to its end. Never rejects. */
  async serve(): Promise<void> {
    const { activity, audit, clock } = this.#deps;
    const began = clock.monotonic();
    const [visitor, connection] = [this.#visitor, this.#id];
    const left = activity.began({ namespace: visitor.namespace, name: visitor.instance });
    audit({ event: 'terminal', visitor, connection });
    const status = await this.#run();
    this.#client.send(STATUS, [statusFrame(status)], () => undefined);
    const closed = this.#client.close();
    left();
    const durationMs = Math.round(clock.monotonic() - began);
    const bytes = { bytesIn: this.#bytesIn, bytesOut: this.#bytesOut };
    const reason = this.#reason ?? (this.#ended.signal.aborted ? 'closed' : 'the shell ended');
    // Ends the direct way too.
    this.#ended.abort();
    this.#access.close();
    audit({ event: 'terminal-end', visitor, connection, reason, ...bytes, durationMs, status: status.code });
    await closed;
  }

  /** Ends it with a line for the person. */
  cut(reason: string): void {
    this.#reason ??= reason;
    this.#ended.abort();
  }

  /** Ends it when the instance no longer allows it, and asks for the next token when it is time. */
  recheck(): void {
    const { instance: name, instanceUid, target } = this.#opening;
    const instance = this.#deps.directory.find({ instance: name, namespace: this.namespace });
    if (instance?.uid !== instanceUid) this.cut(`Instance ${name} was deleted.`);
    else if (instance.target?.uid !== target.uid) this.cut(`Instance ${name} is ${instance.condition}`);
    else this.#askForToken();
  }

  ping(): void {
    this.#client.ping();
  }

  #onFrame(channel: number, bytes: Buffer): void {
    this.#source.took(bytes.length);
    if (channel === STDIN) this.#type(bytes);
    // The end of input closes the pipe of a command, and would hang a terminal up.
    else if (channel === CLOSE && bytes[0] === STDIN && this.#opening.command !== undefined) this.#process?.stdin.end();
    else if (channel === RESIZE) this.#resize(bytes);
    else if (channel === TOKEN) void this.#renew(bytes.toString('latin1'));
    else if (channel === SHOWN) this.#onShown(countOf(bytes));
  }

  #type(bytes: Buffer): void {
    const stdin = this.#process?.stdin;
    if (stdin === undefined || stdin.destroyed || stdin.writableEnded) return;
    this.#bytesIn += bytes.length;
    // A program that reads nothing holds the client back, and no bytes pile up here.
    if (stdin.write(Buffer.from(bytes))) return;
    this.#steer();
    stdin.once('drain', () => this.#steer());
  }

  #steer(): void {
    if (this.#process === undefined || this.#source.isWaiting || this.#process.stdin.writableNeedDrain)
      this.#client.pause();
    else this.#client.resume();
  }

  #resize(bytes: Buffer): void {
    const size = sizeOf(bytes);
    if (size === undefined) return;
    // In place: the shell may be starting with this screen.
    Object.assign(this.#screen, size);
    this.#process?.resize(size.columns, size.rows);
  }

  #onShown(count: number | undefined): void {
    if (count === undefined) return;
    this.#shown = count;
    if (this.#isAhead) return;
    for (const goOn of this.#goOn.splice(0)) goOn();
  }

  /** Whether the client has more to paint than it should. */
  get #isAhead(): boolean {
    return this.#shown !== undefined && this.#bytesOut - this.#shown > MOST_AHEAD;
  }

  /** A page in the background answers a question, but has no timers that come in time. */
  #askForToken(): void {
    const { clock } = this.#deps;
    const { vouchedUntil: until } = this.#caller;
    if (until === undefined || until - clock.now() > ASK_BEFORE_MS) return;
    if (clock.monotonic() - this.#askedAt < ASK_AGAIN_MS) return;
    this.#askedAt = clock.monotonic();
    this.#client.send(TOKEN, [], () => undefined);
  }

  /** The access of the caller, with whose end the terminal ends. */
  #watched(caller: Principal): Access {
    const access = this.#deps.callers.open(caller);
    const { signal } = access;
    const end = (): void => this.cut((signal.reason as AccessEnded).message);
    if (signal.aborted) end();
    else signal.addEventListener('abort', end);
    return access;
  }

  /** Takes a newer token of the same sign-in, for the same tenant. */
  async #renew(token: string): Promise<void> {
    this.#nextToken = token;
    if (this.#isRenewing) return;
    this.#isRenewing = true;
    while (this.#nextToken !== undefined) {
      const text = this.#nextToken;
      this.#nextToken = undefined;
      const next = await this.#deps.callers.find(text).catch(() => undefined);
      const isSame = next?.keyId === this.#caller.keyId && next.namespace === this.#caller.namespace;
      if (isSame && !this.#ended.signal.aborted) this.#renewTo(next);
    }
    this.#isRenewing = false;
  }

  #renewTo(caller: Principal): void {
    this.#access.close();
    this.#caller = caller;
    this.#access = this.#watched(caller);
  }

  async #run(): Promise<ExitStatus> {
    const { endpoint, log } = this.#deps;
    const { signal } = this.#ended;
    try {
      const { command } = this.#opening;
      const launch =
        command === undefined
          ? ({ action: { kind: 'shell' }, terminal: this.#screen } as const)
          : ({ action: { kind: 'command', command } } as const);
      const direct = new DirectWay({ ...this.#deps, portion: NO_WIDE_WINDOWS, turn: this.#turn }, signal);
      this.#process = await startProgram({ endpoint, direct, turn: this.#turn }, this.#opening.target, launch, signal);
    } catch (error) {
      if (this.#reason !== undefined) return { code: NO_STATUS, message: this.#reason };
      if (!signal.aborted) log.warn({ terminal: this.#id, err: error }, 'Terminal was not opened');
      const why = error instanceof Error ? error.message : 'unknown';
      return { code: NO_STATUS, message: `Instance ${this.#visitor.instance} cannot be reached: ${why}` };
    }
    this.#client.resume();
    return await this.#pass(this.#process);
  }

  /** What the client gets on a channel. */
  #output(to: number): Writable {
    const output = new Writable({
      highWaterMark: HIGH_WATER,
      ...channelWrites(to, (channel, parts, done) => {
        for (const { length } of parts) this.#bytesOut += length;
        this.#client.send(channel, parts, (error) => {
          if (error === undefined && this.#isAhead) this.#goOn.push(done);
          else done(error);
        });
      }),
    });
    output.on('error', () => undefined);
    return output;
  }

  /** Passes bytes both ways until the shell has ended, the client is gone, or the terminal is cut. */
  async #pass(process: PodProcess): Promise<ExitStatus> {
    const { signal } = this.#ended;
    const outputs = [pipeline(process.stdout, this.#output(STDOUT), { signal })];
    // A terminal has one output.
    if (this.#opening.command === undefined) process.stderr.resume();
    else outputs.push(pipeline(process.stderr, this.#output(STDERR), { signal }));
    // Open input would hold the status of a command back.
    void process.programEnded.then(() => process.stdin.end());
    await Promise.allSettled(outputs);
    const exit = signal.aborted ? undefined : await process.exit;
    // The client is gone, the terminal is cut, or the stream to the pod is lost: the shell may still run.
    if (exit === undefined || exit.kind === 'lost') void process.hangUp();
    return exit === undefined
      ? { code: NO_STATUS, message: this.#reason ?? 'The client is gone.' }
      : exitStatusOf(exit);
  }
}
