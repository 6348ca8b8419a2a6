import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { EnvHttpProxyAgent, fetch, type Response } from 'undici';
import { systemCode } from './failure.ts';

/** Milliseconds for a connection: a network that drops packets must not hold up a start. */
const CONNECT_TIMEOUT = 3000;
/** Milliseconds without a byte after which a transfer counts as cut. */
const SILENCE = 10_000;
/** How often one file is taken up again; each time must bring more of it. */
const ATTEMPTS = 20;

export interface Download {
  url: string;
  /** Its hash, in hexadecimal. */
  sha256: string;
  /** Where the file goes when its hash is right; beside it lies the part that is there so far. */
  path: string;
  /** Called with the bytes that are there, and the size where the server says it. */
  onBytes: (present: number, size: number | undefined) => void;
  signal: AbortSignal;
}

/** A file that cannot be had; the message says why, as the rest of a sentence that begins with the host. */
export class Unavailable extends Error {
  /** Whether the host itself did not answer, so that nothing else of it can be had either. */
  readonly unreachable: boolean;

  constructor(message: string, { unreachable = false } = {}) {
    super(message);
    this.unreachable = unreachable;
  }
}

/** A transfer that ended in the middle. */
class Cut extends Error {}

/**
 * Downloads a file, through the proxy that the environment names. A transfer that was cut goes on where it ended, also
 * in a later call. Throws Unavailable, also for a file with another hash, of which nothing is kept.
 */
export async function download({ url, sha256, path, onBytes, signal }: Download): Promise<void> {
  const partial = `${path}.partial`;
  const dispatcher = new EnvHttpProxyAgent({
    connect: { timeout: CONNECT_TIMEOUT },
    headersTimeout: SILENCE,
    bodyTimeout: SILENCE,
  });
  try {
    await fetchWhole(partial, async (from) => {
      const range = from === 0 ? {} : { range: `bytes=${from}-` };
      const headers = { 'accept-encoding': 'identity', ...range };
      await append(await fetch(url, { dispatcher, signal, headers }), { partial, from, onBytes });
    });
  } finally {
    await dispatcher.destroy();
    signal.throwIfAborted();
  }
  const found = await hashOf(partial);
  if (found !== sha256) {
    await rm(partial);
    throw new Unavailable(
      `has another file than its makers published, with the sha256 ${found}: nothing of it is kept`,
    );
  }
  await rename(partial, path);
}

async function fetchWhole(partial: string, fetchFrom: (from: number) => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const from = await sizeOf(partial);
    try {
      await fetchFrom(from);
      return;
    } catch (error) {
      if (error instanceof Unavailable) throw error;
      if (!(error instanceof Cut) || attempt === ATTEMPTS) {
        throw new Unavailable(`cannot be reached (${reasonOf(error)})`, { unreachable: true });
      }
    }
  }
}

interface Part {
  partial: string;
  from: number;
  onBytes: Download['onBytes'];
}

async function append(response: Response, { partial, from, onBytes }: Part): Promise<void> {
  const { status, headers, body } = response;
  // The file is whole already.
  if (status === 416) return;
  if (!response.ok || body === null) throw new Unavailable(`answers ${status}`);
  if (headers.get('content-type')?.startsWith('text/html') === true) {
    throw new Unavailable('answers with a web page, as a network does that wants a login');
  }
  const resumed = status === 206;
  let present = resumed ? from : 0;
  const length = headers.get('content-length');
  const size = length === null ? undefined : present + Number(length);
  const begin = present;
  const file = await open(partial, resumed ? 'a' : 'w');
  try {
    for await (const chunk of body) {
      await file.writeFile(chunk);
      present += chunk.length;
      onBytes(present, size);
    }
  } catch (error) {
    throw present > begin ? new Cut('cut', { cause: error }) : error;
  } finally {
    await file.close();
  }
}

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/** The code of what went wrong below fetch, which itself says no more than "fetch failed". */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return systemCode(cause) ?? String(cause);
}
