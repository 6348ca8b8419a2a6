import type { Connection, ServerChannel } from 'ssh2';
import type { Portion } from '../../lib/shares.ts';
import { isClosed, takeOverWindows } from './private.ts';

/** Bytes that a client may always send into a channel before its program reads. */
export const FIRST_WINDOW = 64 * 1024;
const LARGEST_WINDOW = 2 * 1024 * 1024;
/** Bytes that the channels of one connection share beyond their first windows. */
export const SHARED_WINDOW = 24 * 1024 * 1024;
// An honest client stays within its window; sshd lets a few packets of 32 KiB pass as well.
const SLACK = 64 * 1024;

/** What the client may send into one channel. */
export interface Window {
  /** Bytes that were read from the channel so far. */
  readonly bytes: number;
  /** That many bytes were read: the client may send more. */
  took(count: number): void;
  end(): void;
}

/**
 * How much a client may send, in the place of ssh2, which lets 4 MiB wait for the program of each channel. Here a window
 * grows with what was read, as far as the connection's share allows, and is not renewed while nobody reads. At most
 * {@link SHARED_WINDOW} waits, and one {@link FIRST_WINDOW} for each channel. A client that finds the share used up is
 * slowed and never cut. Make it before the first channel opens.
 */
export class Windows {
  readonly #adjust: (channel: ServerChannel, bytes: number) => void;
  /** Bytes that the client may still send, or has sent and nobody has read, for each channel. */
  readonly #ahead = new Map<ServerChannel, number>();
  readonly #portion: Portion;
  #shared = 0;

  /** Windows beyond the first ones come out of `portion`, too. */
  constructor(client: Connection, portion: Portion) {
    this.#portion = portion;
    this.#adjust = takeOverWindows(client, FIRST_WINDOW);
  }

  /** Counts a channel from before its first byte was read until `end`. */
  follow(channel: ServerChannel): Window {
    let bytes = 0;
    this.#set(channel, FIRST_WINDOW);
    return {
      get bytes() {
        return bytes;
      },
      took: (count) => {
        bytes += count;
        this.#renew(channel, count, bytes);
      },
      end: () => {
        this.#set(channel, 0);
        this.#ahead.delete(channel);
      },
    };
  }

  /** Whether the client sent more than it was allowed to. */
  overrun(): boolean {
    for (const [channel, bytes] of this.#ahead) {
      if (channel.readableLength > bytes + SLACK) return true;
    }
    return false;
  }

  #renew(channel: ServerChannel, count: number, bytes: number): void {
    const ahead = this.#ahead.get(channel);
    if (ahead === undefined) return;
    const left = ahead - count;
    this.#set(channel, left);
    // What the client sent before our CLOSE is still read, and no longer renewed.
    if (isClosed(channel)) return;
    const beyond = Math.max(0, left - FIRST_WINDOW);
    const room = Math.max(0, Math.min(SHARED_WINDOW - this.#shared, this.#portion.left()));
    const window = FIRST_WINDOW + Math.min(bytes, LARGEST_WINDOW - FIRST_WINDOW, beyond + room);
    if (window - left < window / 2) return;
    this.#set(channel, window);
    this.#adjust(channel, window - left);
  }

  #set(channel: ServerChannel, bytes: number): void {
    const more = Math.max(0, bytes - FIRST_WINDOW) - Math.max(0, (this.#ahead.get(channel) ?? 0) - FIRST_WINDOW);
    this.#shared += more;
    this.#portion.change(more);
    this.#ahead.set(channel, bytes);
  }
}
