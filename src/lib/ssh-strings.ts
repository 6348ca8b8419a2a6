/** A string as SSH sends it: its length in four bytes, then its bytes (RFC 4251 section 5). */
export function wireString(value: string | Buffer): Buffer {
  const content = Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  return Buffer.concat([length, content]);
}

/** Reads `count` such strings from the start of the bytes, and what follows them. Undefined when the bytes end before. */
export function readStrings(bytes: Buffer, count: number): { strings: Buffer[]; rest: Buffer } | undefined {
  const strings: Buffer[] = [];
  let rest = bytes;
  while (strings.length < count) {
    if (rest.length < 4) return undefined;
    const end = 4 + rest.readUInt32BE();
    if (end > rest.length) return undefined;
    strings.push(rest.subarray(4, end));
    rest = rest.subarray(end);
  }
  return { strings, rest };
}
