import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { PodTarget } from '../../access/pod-target.ts';
import { execInPod, type ExecStream } from '../../kube/streams/exec.ts';
import { StreamRefusedError, type StreamEndpoint } from '../../kube/streams/websocket.ts';
import type { Clock } from '../../lib/clock.ts';
import { TOOLS_BIN } from '../../resources/pod/tools-volume.ts';
import { readUntil } from '../session/read-until.ts';
import type { Portion } from '../ssh2/fair-bytes.ts';
import type { Dial } from './dial.ts';
import { DirectLink } from './direct-link.ts';

/** Of the protocol between gateway and helper. */
const VERSION = 1;
const TOKEN_BYTES = 32;
const LINE_FEED = 10;
const MAX_LINE = 4096;
const MAX_REASON = 300;
const ANNOUNCE_TIMEOUT_MS = 15_000;
const READY_TIMEOUT_MS = 5_000;

/** The direct way to a pod is closed. The message says why. */
export class DirectWayClosedError extends Error {
  override name = 'DirectWayClosedError';

  // A program of the tenant may have written a part of it.
  constructor(message: string, options?: ErrorOptions) {
    super(message.slice(0, MAX_REASON), options);
  }
}

export interface LinkDeps {
  endpoint: StreamEndpoint;
  dial: Dial;
  clock: Clock;
  /** For windows of outputs beyond the first ones. */
  portion: Portion;
}

const announcementSchema = z.union([
  z.object({ port: z.int().min(1).max(65_535), certificate: z.base64() }),
  z.object({ error: z.string() }),
]);

/** Reads where the helper listens. It comes from the tenant's container. */
async function announcementOf(stream: ExecStream, signal: AbortSignal) {
  const either = AbortSignal.any([signal, AbortSignal.timeout(ANNOUNCE_TIMEOUT_MS)]);
  const line = await readUntil(stream.stdout, LINE_FEED, { limit: MAX_LINE, signal: either });
  if (line === undefined && stream.stdout.readableEnded) {
    const exit = await stream.exit;
    if (exit.kind === 'lost') throw new StreamRefusedError(exit.message, 0);
    throw new DirectWayClosedError('The tools of the instance have no program for it.');
  }
  const said = announcementSchema.safeParse(JSON.parse(line?.toString() ?? '{}'));
  if (!said.success) throw new DirectWayClosedError('The helper does not say where it listens.');
  if ('error' in said.data) throw new DirectWayClosedError(said.data.error);
  return { port: said.data.port, certificate: Buffer.from(said.data.certificate, 'base64') };
}

async function readyLink(
  { dial, clock, portion }: LinkDeps,
  to: Parameters<Dial>[0],
  token: Buffer,
  signal: AbortSignal,
): Promise<DirectLink> {
  const wire = await dial(to, signal);
  wire.socket.write(token);
  const link = new DirectLink(wire, clock, portion);
  const cancel = clock.setTimeout(() => link.close(), READY_TIMEOUT_MS);
  try {
    await link.ready;
    return link;
  } catch {
    throw new DirectWayClosedError('The helper did not take the token.');
  } finally {
    cancel();
  }
}

/**
 * Starts the helper by exec and connects to it. The exec goes on until the connection ends, and its end does not end the
 * connection. Rejects with {@link DirectWayClosedError}, and with `StreamRefusedError` when the pod cannot be reached at
 * all.
 */
export async function openLink(
  deps: LinkDeps,
  target: PodTarget & { address: string },
  signal: AbortSignal,
): Promise<DirectLink> {
  const command = [`${TOOLS_BIN}/direct`];
  const stream = await execInPod(deps.endpoint, target, { command, tty: false, signal });
  try {
    const token = randomBytes(TOKEN_BYTES);
    const hello = { version: VERSION, address: target.address, token: token.toString('hex') };
    stream.stdin.write(`${JSON.stringify(hello)}\n`);
    stream.stderr.resume();
    const announced = await announcementOf(stream, signal);
    stream.stdout.resume();
    const link = await readyLink(deps, { host: target.address, ...announced }, token, signal);
    void link.closed.then(() => stream.close());
    return link;
  } catch (error) {
    stream.close();
    if (error instanceof DirectWayClosedError || error instanceof StreamRefusedError) throw error;
    throw new DirectWayClosedError(error instanceof Error ? error.message : 'unknown', { cause: error });
  }
}
