const P1 = 0x9e3779b1;
const P2 = 0x85ebca77;
const P3 = 0xc2b2ae3d;
const P4 = 0x27d4eb2f;
const P5 = 0x165667b1;

function rotl(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

/**
 * 32-bit hash of a string's UTF-16 code units, two to a lane, with the single-lane tail and the final mix of XXH32
 * (github.com/Cyan4973/xxHash, doc/xxhash_spec.md). Even over near-identical inputs; not for secrets.
 */
export function hash32(text: string, seed = 0): number {
  let hash = (seed + P5 + text.length * 2) | 0;
  let index = 0;
  for (; index + 1 < text.length; index += 2) {
    const lane = text.charCodeAt(index) | (text.charCodeAt(index + 1) << 16);
    hash = Math.imul(rotl((hash + Math.imul(lane, P3)) | 0, 17), P4);
  }
  if (index < text.length) {
    hash = Math.imul(rotl((hash + Math.imul(text.charCodeAt(index), P5)) | 0, 11), P1);
  }
  hash = Math.imul(hash ^ (hash >>> 15), P2);
  hash = Math.imul(hash ^ (hash >>> 13), P3);
  return (hash ^ (hash >>> 16)) >>> 0;
}
