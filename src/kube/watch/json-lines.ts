import { TransportError } from '../errors.ts';

const NEWLINE = 0x0a;
/** An etcd object is at most 1.5 MiB by default; a longer line is not an event. */
const MAX_LINE_BYTES = 32 * 1024 * 1024;

/**
 * The JSON values of a stream with one per line, in a batch per chunk. A long line is joined once: the cost stays
 * linear. Throws TransportError for a line that is not JSON, is too long, or is cut off by the end of the stream.
 */
export async function* jsonLines(stream: AsyncIterable<Buffer>): AsyncGenerator<unknown[], void, undefined> {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  for await (const chunk of stream) {
    const batch: unknown[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const tail = chunk.subarray(start, end);
      const line = pending.length === 0 ? tail : Buffer.concat([...pending, tail]);
      if (line.length > 0) batch.push(parseLine(line));
      if (pending.length > 0) pending = [];
      pendingBytes = 0;
      start = end + 1;
    }
    if (start < chunk.length) {
      pending.push(chunk.subarray(start));
      pendingBytes += chunk.length - start;
      if (pendingBytes > MAX_LINE_BYTES) throw broken(`a line is longer than ${MAX_LINE_BYTES} bytes`);
    }
    if (batch.length > 0) yield batch;
  }
  if (pendingBytes > 0) throw broken('the stream ended in the middle of a line');
}

function parseLine(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString('utf8'));
  } catch (error) {
    throw broken('a line is not JSON', error);
  }
}

function broken(what: string, cause?: unknown): TransportError {
  return new TransportError({ message: `watch: ${what}`, status: 0, reason: 'BadStream', cause });
}
