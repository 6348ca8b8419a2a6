import { Duplex } from 'node:stream';
import { NO_TURN, PacedSource, type Turn } from '../../lib/byte-turns.ts';
import { channelWrites } from './channel-writes.ts';
import { openChannelSocket, type ChannelSocket, type StreamEndpoint } from './websocket.ts';

// staging/src/k8s.io/cri-streaming/pkg/streaming/portforward/websocket.go: one port has a data and an error channel, and
// the first frame of each carries the port as a little-endian uint16.
const V4 = 'v4.channel.k8s.io';
const DATA = 0;
const ERROR = 1;
const PORT_BYTES = 2;
const HIGH_WATER = 256 * 1024;
const MAX_ERROR = 4 * 1024;

export interface ForwardTarget {
  namespace: string;
  pod: string;
  /** A TCP port on the pod's loopback, 1 to 65535. */
  port: number;
}

/** The kubelet could not reach the port. The message is in its words. */
export class ForwardError extends Error {
  override name = 'ForwardError';
}

/**
 * A TCP connection to a port on the pod's loopback. The protocol cannot carry the end of one direction: the pod does
 * not see that the writable side ended, and the connection lasts until the pod ends it or the caller destroys the
 * stream. Its bytes wait for the turn of their tenant. A refused port destroys the stream with {@link ForwardError}, which nobody needs to listen for: read
 * `stream.errored`. Rejects with `StreamRefusedError`.
 */
export async function forwardPort(
  endpoint: StreamEndpoint,
  target: ForwardTarget,
  signal?: AbortSignal,
  turn: Turn = NO_TURN,
): Promise<Duplex> {
  let socket: ChannelSocket | undefined;
  let isFull = false;
  const steer = (): void => {
    if (isFull || source.isWaiting) socket?.pause();
    else socket?.resume();
  };
  const source = new PacedSource(turn, steer);
  let failure = '';
  const header = [PORT_BYTES, PORT_BYTES];
  const stream = new Duplex({
    readableHighWaterMark: HIGH_WATER,
    writableHighWaterMark: HIGH_WATER,
    read: () => {
      isFull = false;
      steer();
    },
    ...channelWrites(
      DATA,
      (channel, parts, done) => {
        if (socket === undefined) done(new ForwardError('The stream is not open.'));
        else socket.send(channel, parts, done);
      },
      turn,
    ),
    destroy: (error, done) => {
      socket?.close();
      done(error);
    },
  });
  stream.on('error', () => undefined);
  const onFrame = (channel: number, bytes: Buffer): void => {
    const skip = Math.min(header[channel] ?? 0, bytes.length);
    if (skip > 0) header[channel] = (header[channel] ?? 0) - skip;
    const rest = bytes.subarray(skip);
    if (rest.length === 0) return;
    if (channel === ERROR) {
      if (failure.length < MAX_ERROR) failure += rest.toString();
      stream.destroy(new ForwardError(failure));
    } else if (channel === DATA && !stream.destroyed) {
      isFull = !stream.push(rest);
      if (isFull) steer();
      source.took(rest.length);
    }
  };
  const pod = `/api/v1/namespaces/${encodeURIComponent(target.namespace)}/pods/${encodeURIComponent(target.pod)}`;
  socket = await openChannelSocket(endpoint, `${pod}/portforward?ports=${target.port}`, [V4], {
    signal,
    events: {
      data: onFrame,
      closed: () => {
        if (!stream.destroyed) stream.push(null);
      },
    },
  });
  return stream;
}
