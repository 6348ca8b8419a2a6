import { gunzipSync } from 'node:zlib';

/** Something that only its owner may know. */
export interface Secret {
  name: string;
  /** A piece of it that no other text has. */
  piece: string;
}

/** A private key in OpenSSH's format. Its last full line has secret bytes; its first line is the same in all keys. */
export function privateKey(name: string, pem: string): Secret {
  const body = pem.split('\n').filter((line) => line !== '' && !line.startsWith('-----'));
  return { name, piece: body.at(-2) ?? '' };
}

/** Words of every private key in text form. */
export const ANY_PRIVATE_KEY: Secret = { name: 'a private key', piece: 'PRIVATE KEY-----' };

const GZIP_IN_BASE64 = 'H4sI';

/** The text in a value of a Secret, with all layers of base64 and gzip removed (Helm applies base64 twice). */
export function decoded(value: string): string {
  const bytes = Buffer.from(value, 'base64');
  if (bytes.subarray(0, 2).equals(Buffer.from([0x1f, 0x8b]))) return gunzipSync(bytes).toString();
  const text = bytes.toString();
  return text.startsWith(GZIP_IN_BASE64) ? decoded(text) : text;
}

/** Names of the secrets that stand in the text, as they are or in base64. */
export function leaksIn(text: string, secrets: readonly Secret[]): string[] {
  return secrets.filter(({ piece }) => encodings(piece).some((form) => text.includes(form))).map(({ name }) => name);
}

/** A text, and its base64 at each of the three offsets, without the characters that depend on the text around it. */
function encodings(piece: string): string[] {
  const shifted = [0, 1, 2].map((shift) => {
    const base64 = Buffer.from(`${' '.repeat(shift)}${piece}`).toString('base64url');
    return base64.slice(shift === 0 ? 0 : shift + 1, -2);
  });
  return [piece, ...shifted, ...shifted.map((text) => text.replaceAll('-', '+').replaceAll('_', '/'))];
}
