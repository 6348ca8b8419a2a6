import type { Readable } from 'node:stream';
import { TransportError } from '../errors.ts';

/** The whole body as text. Rejects a body of more than `maxBytes`, which would fill the memory. */
export async function readText(body: Readable, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) {
      body.destroy();
      throw new TransportError({ message: `answer larger than ${maxBytes} bytes`, status: 0, reason: 'TooLarge' });
    }
    chunks.push(chunk);
  }
  return chunks.length === 1 ? String(chunks[0]) : Buffer.concat(chunks, size).toString('utf8');
}
