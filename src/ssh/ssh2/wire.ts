/** A string as SSH sends it: its length in four bytes, then its bytes (RFC 4251 section 5). */
export function wireString(value: string | Buffer): Buffer {
  const content = Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  return Buffer.concat([length, content]);
}
