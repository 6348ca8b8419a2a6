import type { SessionKind, SessionRecord } from '../audit.ts';
import type { LiveConnection, OpenChannel } from '../connection.ts';
import { ChannelOutput } from '../ssh2/channel-output.ts';
import type { ServerChannel } from '../ssh2/protocol.ts';
import type { Window } from '../ssh2/windows.ts';

interface ChannelService {
  kind: SessionKind;
  open: (output: ChannelOutput) => OpenChannel;
  /** Passes the bytes of the channel. Resolves at its end. */
  serve: (output: ChannelOutput, window: Window) => Promise<Pick<SessionRecord, 'status' | 'way'>>;
}

/** Serves one channel from its first byte to its audit record, and closes it. */
export async function serveChannel(
  connection: LiveConnection,
  channel: ServerChannel,
  { kind, open, serve }: ChannelService,
): Promise<void> {
  const { gateway, login, id, windows, channels } = connection;
  const began = gateway.clock.monotonic();
  const output = new ChannelOutput(channel, connection.queue);
  const window = windows.follow(channel);
  const opened = open(output);
  channels.add(opened);
  const { status, way } = await serve(output, window);
  channel.unpipe();
  channel.resume();
  channel.end();
  channels.delete(opened);
  window.end();
  gateway.audit({
    event: 'session',
    login,
    connection: id,
    kind,
    bytesIn: window.bytes,
    bytesOut: output.bytes,
    durationMs: Math.round(gateway.clock.monotonic() - began),
    status,
    way,
  });
}
