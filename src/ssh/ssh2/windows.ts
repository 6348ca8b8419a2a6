import type { Connection, ServerChannel } from 'ssh2';

/** Where ssh2 tells a client how much it may send (lib/protocol/Protocol.js, 1.17). */
interface Announcer {
  channelOpenConfirm(remote: number, local: number, window: number, packet: number): void;
  channelWindowAdjust(remote: number, amount: number): void;
}

/** The client's number of a channel, and how far our side of it has ended (lib/Channel.js, 1.17). */
interface Outgoing {
  outgoing: { id: number; state: 'open' | 'eof' | 'closing' | 'closed' };
}

/** What a client may always send into a channel ahead of its reader. */
export const FIRST_WINDOW = 64 * 1024;
const LARGEST_WINDOW = 2 * 1024 * 1024;
/** What the channels of one connection share beyond their first windows. */
export const SHARED_WINDOW = 24 * 1024 * 1024;
// An honest client stays within its window; sshd lets a few packets of 32 KiB pass as well.
const SLACK = 64 * 1024;

export interface Inlet {
  /** Bytes that were read from the channel so far. */
  readonly bytes: number;
  /** That many bytes were read: the client may send more. */
  took(count: number): void;
  end(): void;
}

export interface Windows {
  /** Counts a channel from before its first byte was read until `end`. */
  follow(channel: ServerChannel): Inlet;
  /** Whether the client sent more than it was allowed to. */
  overrun(): boolean;
}

/**
 * Takes over from ssh2 how much a client may send: there each of a connection's channels may always have 4 MiB waiting
 * for its program. Here a window grows with what was read, as far as the connection's share allows, and is not renewed
 * while nobody reads. What waits is at most {@link SHARED_WINDOW} and one {@link FIRST_WINDOW} for each channel; a client
 * that finds the share used up is slowed and never cut. Call it before the first channel opens.
 */
export function shareWindows(client: Connection): Windows {
  const { _protocol: protocol } = client as unknown as { _protocol: Announcer };
  const confirm = protocol.channelOpenConfirm.bind(protocol);
  const adjust = protocol.channelWindowAdjust.bind(protocol);
  protocol.channelOpenConfirm = (remote, local, _window, packet) => confirm(remote, local, FIRST_WINDOW, packet);
  protocol.channelWindowAdjust = () => undefined;
  const ahead = new Map<ServerChannel, number>();
  let shared = 0;
  const set = (channel: ServerChannel, bytes: number): void => {
    shared += Math.max(0, bytes - FIRST_WINDOW) - Math.max(0, (ahead.get(channel) ?? 0) - FIRST_WINDOW);
    ahead.set(channel, bytes);
  };
  return {
    follow: (channel) => {
      let bytes = 0;
      set(channel, FIRST_WINDOW);
      return {
        get bytes() {
          return bytes;
        },
        took: (count) => {
          bytes += count;
          const rest = ahead.get(channel);
          if (rest === undefined) return;
          const left = rest - count;
          set(channel, left);
          // After CLOSE the number is the client's again, for another channel perhaps. What it sent before is still read.
          const { id, state } = (channel as unknown as Outgoing).outgoing;
          if (state === 'closing' || state === 'closed') return;
          const beyond = Math.max(0, left - FIRST_WINDOW);
          const window = FIRST_WINDOW + Math.min(bytes, LARGEST_WINDOW - FIRST_WINDOW, beyond + SHARED_WINDOW - shared);
          if (window - left < window / 2) return;
          set(channel, window);
          adjust(id, window - left);
        },
        end: () => {
          set(channel, 0);
          ahead.delete(channel);
        },
      };
    },
    overrun: () => {
      for (const [channel, bytes] of ahead) {
        if (channel.readableLength > bytes + SLACK) return true;
      }
      return false;
    },
  };
}
