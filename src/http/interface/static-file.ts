import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { RequestHandler } from 'express';
import { etagOf, hasVersion } from '../../lib/etag.ts';

/** A TCP segment or two. Shorter files gain nothing. */
const WORTH_COMPRESSING = 1024;
const BROTLI_QUALITY = 9;

/** The better one first. */
const ENCODINGS = ['br', 'gzip'] as const;
type Encoding = (typeof ENCODINGS)[number];

const COMPRESS: Readonly<Record<Encoding, (content: Buffer) => Promise<Buffer>>> = {
  br: (content) => promisify(brotliCompress)(content, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  gzip: promisify(gzip),
};

/**
 * Serves a content that never changes, to everyone. It is read when it is first asked for, and compressed once for each
 * encoding, beside the thread of the role: strangers may ask for it as often as they like.
 */
export function staticFile(read: () => Buffer, headers: Readonly<Record<string, string>>): RequestHandler {
  let file: { content: Buffer; etag: string } | undefined;
  const compressed = new Map<Encoding, Promise<Buffer>>();

  return async (request, response) => {
    if (file === undefined) {
      const content = read();
      file = { content, etag: etagOf(content) };
    }
    const { content, etag } = file;
    response.set({ ...headers, etag });
    response.vary('accept-encoding');
    if (hasVersion(request.headers['if-none-match'], etag)) {
      response.status(304).end();
      return;
    }
    const isLong = content.length >= WORTH_COMPRESSING;
    const encoding = isLong ? ENCODINGS.find((one) => request.acceptsEncodings(one) === one) : undefined;
    const body = encoding === undefined ? content : await once(compressed, encoding, content);
    if (encoding !== undefined) response.set('content-encoding', encoding);
    response.set('content-length', String(body.length)).end(body);
  };
}

function once(compressed: Map<Encoding, Promise<Buffer>>, encoding: Encoding, content: Buffer): Promise<Buffer> {
  const known = compressed.get(encoding) ?? COMPRESS[encoding](content);
  compressed.set(encoding, known);
  return known;
}
