import { hash } from 'node:crypto';
import { readStrings } from '../lib/ssh-strings.ts';

/** The text is not a public key that may open an instance. The message says what to do. */
export class SshPublicKeyError extends Error {
  override name = 'SshPublicKeyError';
}

export interface SshPublicKey {
  /** Key type, for example ssh-ed25519. */
  type: string;
  /** The wire form: what the line carries in base64, what a client offers at login, and what the fingerprint is of. */
  blob: Buffer;
  /** SHA256 fingerprint as ssh-keygen -lf prints it. */
  fingerprint: string;
  /** As ssh-keygen counts them: 256 for ed25519. */
  bits: number;
  comment: string;
  /** The key signs certificates of users and opens nothing itself: the option `cert-authority`. */
  authority?: Authority;
}

export interface Authority {
  /** Of whom a certificate must name one: the option `principals`. Undefined: the name of the login, as with sshd. */
  principals: readonly string[] | undefined;
}

const MIN_RSA_BITS = 2048;
const MAX_RSA_BITS = 16_384;
const CURVES: Readonly<Record<string, { bits: number; point: number }>> = {
  nistp256: { bits: 256, point: 65 },
  nistp384: { bits: 384, point: 97 },
  nistp521: { bits: 521, point: 133 },
};
const ACCEPTED = 'ssh-ed25519, ecdsa-sha2-nistp256/384/521, ssh-rsa and the sk- types of security keys';
const MAKE_ONE = 'Make another key with: ssh-keygen -t ed25519';

/** Reads the strings of a key one by one, and says what is missing. */
class Reader {
  #rest: Buffer;

  constructor(blob: Buffer) {
    this.#rest = blob;
  }

  bytes(what: string): Buffer {
    const { strings: [bytes] = [], rest } = readStrings(this.#rest, 1) ?? {};
    if (bytes === undefined || rest === undefined)
      throw new SshPublicKeyError(`The key is cut off before its ${what} ends. Paste the whole line of the .pub file.`);
    this.#rest = rest;
    return bytes;
  }

  text(what: string): string {
    return this.bytes(what).toString('latin1');
  }

  /** A positive mpint; the number of its bits. */
  bits(what: string): number {
    const bytes = this.bytes(what);
    const first = bytes.findIndex((byte) => byte !== 0);
    if (first < 0 || ((bytes[0] ?? 0) & 0x80) !== 0)
      throw new SshPublicKeyError(`The ${what} of the key is not valid. Paste it again.`);
    return (bytes.length - first - 1) * 8 + (32 - Math.clz32(bytes[first] ?? 0));
  }

  end(): void {
    if (this.#rest.length > 0) throw new SshPublicKeyError('The key has bytes after its end. Paste it again.');
  }
}

function readEd25519(reader: Reader): number {
  if (reader.bytes('public key').length !== 32)
    throw new SshPublicKeyError('An ed25519 key has 32 bytes. Paste it again.');
  return 256;
}

function readEcdsa(reader: Reader, curve: string): number {
  const named = reader.text('curve');
  const known = CURVES[curve];
  if (named !== curve || known === undefined)
    throw new SshPublicKeyError(`The line says ${curve} and the key in it is on ${named}. Paste the line unchanged.`);
  const point = reader.bytes('point');
  // 4: an uncompressed point, the only form that OpenSSH writes (RFC 5656 section 3.1).
  if (point.length !== known.point || point[0] !== 4)
    throw new SshPublicKeyError('The point of the key is not valid. Paste it again.');
  return known.bits;
}

function readRsa(reader: Reader): number {
  if (reader.bits('exponent') < 2) throw new SshPublicKeyError(`The exponent of the RSA key is too small. ${MAKE_ONE}`);
  const bits = reader.bits('modulus');
  if (bits < MIN_RSA_BITS || bits > MAX_RSA_BITS) {
    throw new SshPublicKeyError(
      `An RSA key needs ${MIN_RSA_BITS} to ${MAX_RSA_BITS} bits and this one has ${bits}. ${MAKE_ONE}`,
    );
  }
  return bits;
}

type Read = (reader: Reader) => number;

const TYPES: Readonly<Record<string, Read>> = {
  'ssh-ed25519': readEd25519,
  'ecdsa-sha2-nistp256': (reader) => readEcdsa(reader, 'nistp256'),
  'ecdsa-sha2-nistp384': (reader) => readEcdsa(reader, 'nistp384'),
  'ecdsa-sha2-nistp521': (reader) => readEcdsa(reader, 'nistp521'),
  'ssh-rsa': readRsa,
  'sk-ssh-ed25519@openssh.com': (reader) => withApplication(reader, readEd25519(reader)),
  'sk-ecdsa-sha2-nistp256@openssh.com': (reader) => withApplication(reader, readEcdsa(reader, 'nistp256')),
};

/** The application comes last (openssh PROTOCOL.u2f). */
function withApplication(reader: Reader, bits: number): number {
  if (reader.text('application') === '')
    throw new SshPublicKeyError('The application of the security key is empty. Paste the key again.');
  return bits;
}

function readerOf(type: string): Read {
  const read = Object.hasOwn(TYPES, type) ? TYPES[type] : undefined;
  if (read !== undefined) return read;
  if (type === 'ssh-dss') {
    throw new SshPublicKeyError(`DSA keys are too weak. ${MAKE_ONE}`);
  }
  if (type.includes('=') || type.includes('"') || /^(no-|restrict|cert-authority|principals|permit)/.test(type)) {
    throw new SshPublicKeyError(
      'Options before the key are not accepted, but cert-authority and principals="…" with it. Start the line with the key type.',
    );
  }
  if (type.includes('-cert-')) {
    throw new SshPublicKeyError(
      'Certificates are not accepted. Paste the plain public key, or the key of the authority after the word cert-authority.',
    );
  }
  throw new SshPublicKeyError(`"${type.slice(0, 32)}" is not a key type. Berth accepts ${ACCEPTED}.`);
}

function decode(text: string): Buffer {
  const blob = Buffer.from(text, 'base64');
  const padded = text.padEnd(Math.ceil(text.length / 4) * 4, '=');
  // Node skips characters that are not base64; encoded again, the text shows what was skipped.
  if (text === '' || blob.toString('base64') !== padded) {
    throw new SshPublicKeyError('The second word of the line is not base64. Paste the whole line of the .pub file.');
  }
  return blob;
}

/** SHA256 fingerprint of a wire form, as ssh-keygen -lf prints it. */
export function fingerprintOf(blob: Buffer): string {
  return `SHA256:${hash('sha256', blob, 'base64').replace('=', '')}`;
}

// sshd(8), the format of AUTHORIZED_KEYS: options are separated by commas, and a value stands in double quotes.
const OPTIONS = /^(?:cert-authority|principals="[^"\\]*")(?:,(?:cert-authority|principals="[^"\\]*"))*(?=[ \t])/;

function readOptions(options: string): Authority | undefined {
  if (options === '') return undefined;
  const names = options.replaceAll(/="[^"]*"/g, '').split(',');
  if (!names.includes('cert-authority')) {
    throw new SshPublicKeyError(
      'principals is only for certificates. Start the line with cert-authority,principals="…".',
    );
  }
  const [list, ...others] = options.matchAll(/"([^"]*)"/g);
  const principals = list?.[1]?.split(',').map((name) => name.trim());
  if (others.length > 0 || principals?.includes('')) {
    throw new SshPublicKeyError('principals is one list of names with commas between them, for example "alice,bob".');
  }
  return { principals };
}

/**
 * Reads one line of authorized_keys without options but `cert-authority` and `principals`, and checks the whole wire form (RFC 4253 section 6.6, RFC 5656,
 * RFC 8709, openssh PROTOCOL.u2f). Throws SshPublicKeyError, which says what is wrong and what to do.
 */
export function parseSshPublicKey(line: string): SshPublicKey {
  if (/PRIVATE KEY/.test(line)) {
    throw new SshPublicKeyError('This is a private key, which nobody else may see. Paste the .pub file instead.');
  }
  if (/[\r\n\0]/.test(line.trim()))
    throw new SshPublicKeyError('The key must be one line: the content of one .pub file.');
  const options = OPTIONS.exec(line.trim())?.[0] ?? '';
  const authority = readOptions(options);
  const [type = '', encoded = '', ...comment] = line
    .trim()
    .slice(options.length)
    .trim()
    .split(/[ \t]+/);
  const read = readerOf(type);
  const blob = decode(encoded);
  const reader = new Reader(blob);
  const inner = reader.text('type');
  if (inner !== type) {
    throw new SshPublicKeyError(
      `The line says ${type} and the key in it is ${inner.slice(0, 32)}. Paste the line unchanged.`,
    );
  }
  const bits = read(reader);
  reader.end();
  const key = { type, blob, fingerprint: fingerprintOf(blob), bits, comment: comment.join(' ') };
  return authority === undefined ? key : { ...key, authority };
}
