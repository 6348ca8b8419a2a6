import type { Duplex } from 'node:stream';
import type { Clock } from '../lib/clock.ts';
import { PacedSource, PIECE_BYTES, type Turn } from '../lib/byte-turns.ts';
import type { Portion } from '../lib/shares.ts';
import type { Wire } from './dial.ts';
import { FrameError, FROM_POD, FrameReader, headerOf, TO_POD } from './frames.ts';
import { LinkChannel, strayCost, type OpenRequest } from './link-channel.ts';

const PING_INTERVAL_MS = 20_000;
const CLOSE_GRACE_MS = 2_000;

/** The connection to a helper in a pod: sessions and forwards of an SSH connection, or connections to ports. */
export class DirectLink {
  readonly #socket: Duplex;
  readonly #clock: Clock;
  readonly #portion: Portion;
  readonly #channels = new Map<number, LinkChannel>();
  readonly #ready = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<void>();
  #last = 0;
  /** What may still come of channels that are over. */
  #strays = 0;
  /** Pings that were not answered, and the frame that says that the token was right. */
  #pings = 1;
  #isOver = false;
  #isOurs = false;
  /** Something came since the last ping. */
  #isAlive = true;
  #stopPings = (): void => undefined;

  /**
   * Takes a connection over on which the token was sent. Wide windows of its outputs come out of `portion`, and it
   * is read at its `turn`.
   */
  constructor({ socket, onBytes }: Wire, clock: Clock, { portion, turn }: { portion: Portion; turn: Turn }) {
    this.#socket = socket;
    this.#clock = clock;
    this.#portion = portion;
    this.#ready.promise.catch(() => undefined);
    const frames = new FrameReader({
      output: (type, id, bytes) => {
        turn.count(PIECE_BYTES);
        this.#known(id, bytes.length)?.output(type, bytes);
      },
      control: (type, id, payload) => this.#control(type, id, payload),
    });
    const source = new PacedSource(turn, (isWaiting) => void (isWaiting ? socket.pause() : socket.resume()));
    onBytes((chunk) => {
      this.#isAlive = true;
      if (this.#isOver) return;
      source.took(chunk.length);
      try {
        frames.read(chunk);
      } catch (error) {
        this.#lose(`The instance broke the protocol: ${error instanceof Error ? error.message : 'unknown'}.`);
      }
    });
    socket.on('error', (error) => this.#lose(error.message));
    for (const event of ['end', 'close']) socket.on(event, () => this.#lose('The instance closed it.'));
    this.#pingLater();
  }

  /** Resolves once the helper has taken the token; rejects when the connection ends before. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Resolves when the connection is over. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  get isOpen(): boolean {
    return !this.#isOver;
  }

  /** It ended although the gateway did not end it: programs may still run. */
  get wasLost(): boolean {
    return this.#isOver && !this.#isOurs;
  }

  open(request: OpenRequest): LinkChannel {
    this.#last += 1;
    const id = this.#last;
    const channel = new LinkChannel((type, parts, done) => this.#send(type, id, parts, done), this.#portion);
    if (this.#isOver) {
      channel.end({ kind: 'lost', message: 'The connection is over.' });
      return channel;
    }
    this.#channels.set(id, channel);
    void channel.exit.then(() => this.#forget(id, channel));
    this.#send(TO_POD.open, id, [Buffer.from(JSON.stringify(request))]);
    return channel;
  }

  /** Sends what waits and ends the connection: the helper then ends what runs. */
  close(): void {
    if (this.#isOver) return;
    this.#isOurs = true;
    this.#socket.end();
    const cancel = this.#clock.setTimeout(() => this.#socket.destroy(), CLOSE_GRACE_MS);
    this.#socket.once('close', cancel);
    this.#lose('The client is gone.');
  }

  #forget(id: number, channel: LinkChannel): void {
    this.#strays += channel.strays;
    this.#channels.delete(id);
  }

  #known(id: number, bytes: number): LinkChannel | undefined {
    const channel = this.#channels.get(id);
    if (channel !== undefined) return channel;
    if (id === 0 || id > this.#last) throw new FrameError('it names an unknown channel');
    // Frames of a channel that was closed may still be on their way, but not for ever.
    this.#strays -= strayCost(bytes);
    if (this.#strays < 0) throw new FrameError('it continues a channel that is over');
    return undefined;
  }

  #control(type: number, id: number, payload: Buffer): void {
    if (type !== FROM_POD.pong) {
      this.#known(id, payload.length)?.control(type, payload);
      return;
    }
    this.#pings -= 1;
    if (this.#pings < 0) throw new FrameError('it answers what was not asked');
    this.#ready.resolve();
  }

  #send(type: number, id: number, parts: readonly Uint8Array[], done?: (error?: Error) => void): void {
    if (this.#socket.destroyed || this.#socket.writableEnded) {
      done?.(new Error('The connection is over.'));
      return;
    }
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    const frame = [headerOf(type, id, length), ...parts];
    this.#socket.cork();
    for (const [index, part] of frame.entries()) {
      this.#socket.write(part, index === frame.length - 1 ? (error) => done?.(error ?? undefined) : undefined);
    }
    this.#socket.uncork();
  }

  #lose(message: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopPings();
    if (!this.#isOurs) this.#socket.destroy();
    this.#ready.reject(new Error(message));
    for (const channel of this.#channels.values()) channel.end({ kind: 'lost', message });
    this.#closed.resolve();
  }

  // A node that vanishes closes nothing.
  #pingLater(): void {
    this.#stopPings = this.#clock.setTimeout(() => {
      if (!this.#isAlive) {
        this.#lose('The instance stopped answering.');
        return;
      }
      this.#isAlive = false;
      this.#pings += 1;
      this.#send(TO_POD.ping, 0, []);
      this.#pingLater();
    }, PING_INTERVAL_MS);
  }
}
