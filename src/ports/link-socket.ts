import { Duplex } from 'node:stream';
import type { LinkChannel } from '../direct/link-channel.ts';
import type { Turn } from '../lib/byte-turns.ts';
import { channelWrites } from '../kube/streams/channel-writes.ts';

const HIGH_WATER = 256 * 1024;

/**
 * The connection of a channel, as a socket. It may be written to before it is open. A port that nobody listens on destroys
 * it with an error, which nobody needs to listen for: read `socket.errored`. What is written waits for its turn.
 */
export function socketOf(channel: LinkChannel, turn: Turn): Duplex {
  const { stdin, stdout } = channel;
  const socket = new Duplex({
    allowHalfOpen: false,
    readableHighWaterMark: HIGH_WATER,
    writableHighWaterMark: HIGH_WATER,
    read: () => void stdout.resume(),
    ...channelWrites(
      0,
      (_channel, parts, done) => void stdin.write(Buffer.concat(parts), (error) => done(error ?? undefined)),
      turn,
    ),
    final: (done) => {
      stdin.end();
      done();
    },
    destroy: (error, done) => {
      channel.close();
      done(error);
    },
  });
  socket.on('error', () => undefined);
  let arrived = 0;
  let length = Number.POSITIVE_INFINITY;
  let isWhole = false;
  const endWhenWhole = (): void => {
    if (arrived < length || isWhole) return;
    isWhole = true;
    socket.push(null);
  };
  stdout.on('data', (bytes: Buffer) => {
    arrived += bytes.length;
    if (!socket.push(bytes)) stdout.pause();
    endWhenWhole();
  });
  // The channel itself lasts until both of its halves are over.
  const watchOutput = async (): Promise<void> => {
    length = await channel.outputEnd;
    endWhenWhole();
  };
  const watchExit = async (): Promise<void> => {
    const exit = await channel.exit;
    if (exit.kind !== 'exited') socket.destroy(new Error(exit.message));
  };
  void watchOutput();
  void watchExit();
  return socket;
}
