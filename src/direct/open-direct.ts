import { randomBytes } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import type { Logger } from 'pino';
import { z } from 'zod';
import { readUntil } from '../kube/streams/read-until.ts';
import { StreamRefusedError } from '../kube/streams/websocket.ts';
import type { Clock } from '../lib/clock.ts';
import type { Turn } from '../lib/byte-turns.ts';
import type { Portion } from '../lib/shares.ts';
import type { BlockedPods } from './blocked-pods.ts';
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

/** A stream through the API server to a helper that waits for its first line. */
export interface Carrier {
  input: Writable;
  output: Readable;
  /** Why the output ended before the helper said where it listens. */
  whyEnded: () => Promise<Error>;
  close: () => void;
}

export interface DirectDeps {
  dial: Dial;
  clock: Clock;
  /** For windows of outputs beyond the first ones. */
  portion: Portion;
  /** What bytes wait for. */
  turn: Turn;
  blocked: BlockedPods;
  log: Logger;
}

/** A pod whose address is known. */
export interface DirectTarget {
  namespace: string;
  pod: string;
  uid: string;
  address: string;
}

const announcementSchema = z.union([
  z.object({ port: z.int().min(1).max(65_535), certificate: z.base64() }),
  z.object({ error: z.string() }),
]);

/** Reads where the helper listens. It comes from the tenant's container. */
async function announcementOf({ output, whyEnded }: Carrier, signal: AbortSignal) {
  const either = AbortSignal.any([signal, AbortSignal.timeout(ANNOUNCE_TIMEOUT_MS)]);
  const line = await readUntil(output, LINE_FEED, { limit: MAX_LINE, signal: either });
  if (line === undefined && (output.readableEnded || output.destroyed)) throw await whyEnded();
  const said = announcementSchema.safeParse(JSON.parse(line?.toString() ?? '{}'));
  if (!said.success) throw new DirectWayClosedError('The helper does not say where it listens.');
  if ('error' in said.data) throw new DirectWayClosedError(said.data.error);
  return { port: said.data.port, certificate: Buffer.from(said.data.certificate, 'base64') };
}

async function readyLink(
  { dial, clock, portion, turn }: DirectDeps,
  to: Parameters<Dial>[0],
  token: Buffer,
  signal: AbortSignal,
): Promise<DirectLink> {
  const wire = await dial(to, signal);
  wire.socket.write(token);
  const link = new DirectLink(wire, clock, { portion, turn });
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

/** Tells the helper the address of its pod and a token, and connects to where it then listens. */
async function openLink(deps: DirectDeps, carrier: Carrier, address: string, signal: AbortSignal): Promise<DirectLink> {
  try {
    const token = randomBytes(TOKEN_BYTES);
    carrier.input.write(`${JSON.stringify({ version: VERSION, address, token: token.toString('hex') })}\n`);
    const announced = await announcementOf(carrier, signal);
    carrier.output.resume();
    return await readyLink(deps, { host: address, ...announced }, token, signal);
  } catch (error) {
    if (error instanceof DirectWayClosedError || error instanceof StreamRefusedError) throw error;
    throw new DirectWayClosedError(error instanceof Error ? error.message : 'unknown', { cause: error });
  } finally {
    // The helper needs it no longer: the connection keeps it alive, and ends it.
    carrier.close();
  }
}

function endWith(link: DirectLink, signal: AbortSignal): void {
  const close = (): void => link.close();
  signal.addEventListener('abort', close, { once: true });
  void link.closed.then(() => signal.removeEventListener('abort', close));
  if (signal.aborted) close();
}

/**
 * Opens a link to the helper that `reach` finds through the API server. It ends with the signal. Undefined when the direct
 * way is closed: then the pod is blocked. Rejects as `reach` does, and with `StreamRefusedError` when the carrier breaks.
 */
export async function openDirect(
  deps: DirectDeps,
  reach: () => Promise<Carrier>,
  { namespace, pod, uid, address }: DirectTarget,
  signal: AbortSignal,
): Promise<DirectLink | undefined> {
  try {
    const link = await openLink(deps, await reach(), address, signal);
    endWith(link, signal);
    return link;
  } catch (error) {
    if (!(error instanceof DirectWayClosedError)) throw error;
    if (!signal.aborted) {
      deps.blocked.add(uid);
      deps.log.info({ namespace, pod, reason: error.message }, 'The direct way to a pod is closed');
    }
    return undefined;
  }
}
