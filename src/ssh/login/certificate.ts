import { BlockList, isIP } from 'node:net';
import { readStrings, wireString } from '../../lib/ssh-strings.ts';

/** A certificate of a user as it was offered. Nothing in it holds before its authority's signature was verified. */
export interface Certificate {
  /** Type and wire form of the key that it is for. */
  type: string;
  key: Buffer;
  serial: bigint;
  isOfUser: boolean;
  /** What the authority calls it; no more than {@link MAX_ID} characters, none of them a control character. */
  id: string;
  principals: readonly string[];
  /** Seconds since 1970: from, and before. */
  validAfter: bigint;
  validBefore: bigint;
  criticalOptions: ReadonlyMap<string, Buffer>;
  extensions: ReadonlySet<string>;
  /** Wire form of the key that signed it. */
  authority: Buffer;
  signed: Buffer;
  signature: Buffer;
}

const SUFFIX = '-cert-v01@openssh.com';
/** How many strings the key has, after the type and the random bytes. */
const KEY_STRINGS: Readonly<Record<string, number>> = {
  'ssh-ed25519': 1,
  'ssh-rsa': 2,
  'ecdsa-sha2-nistp256': 2,
  'ecdsa-sha2-nistp384': 2,
  'ecdsa-sha2-nistp521': 2,
  'sk-ssh-ed25519': 2,
  'sk-ecdsa-sha2-nistp256': 3,
};
const SERIAL_AND_TYPE = 12;
const OF_USER = 1;
const VALIDITY = 16;
/** The name of a type with a domain ends in it, before and after the suffix of certificates. */
const DOMAIN = '@openssh.com';
const MAX_ID = 128;
const MAX_LIST = 256;

/** All strings up to the end of the bytes. Undefined when one is cut off, or there are more than {@link MAX_LIST}. */
function allStrings(bytes: Buffer): Buffer[] | undefined {
  const found: Buffer[] = [];
  for (let rest = bytes; rest.length > 0;) {
    const read = readStrings(rest, 1);
    if (read === undefined || found.length === MAX_LIST) return undefined;
    found.push(...read.strings);
    rest = read.rest;
  }
  return found;
}

/** Names with their data. Undefined for a name that comes twice, or out of order: PROTOCOL.certkeys sorts them. */
function options(bytes: Buffer): Map<string, Buffer> | undefined {
  const strings = allStrings(bytes);
  if (strings === undefined || strings.length % 2 === 1) return undefined;
  const found = new Map<string, Buffer>();
  let last = '';
  for (let at = 0; at < strings.length; at += 2) {
    const name = strings[at]?.toString('latin1') ?? '';
    if (name <= last) return undefined;
    found.set(name, strings[at + 1] ?? Buffer.alloc(0));
    last = name;
  }
  return found;
}

function readable(text: Buffer): string {
  return text.toString('utf8').replaceAll(/\p{C}/gu, '?').slice(0, MAX_ID);
}

/** Reads a certificate from its wire form (openssh PROTOCOL.certkeys). Undefined for anything else, a plain key too. */
export function readCertificate(blob: Buffer): Certificate | undefined {
  const name = readStrings(blob, 1)?.strings[0]?.toString('latin1') ?? '';
  const base = name.endsWith(SUFFIX) ? name.slice(0, -SUFFIX.length) : '';
  const count = Object.hasOwn(KEY_STRINGS, base) ? KEY_STRINGS[base] : undefined;
  const head = count === undefined ? undefined : readStrings(blob, 2 + count);
  if (count === undefined || head === undefined || head.rest.length < SERIAL_AND_TYPE) return undefined;
  const names = readStrings(head.rest.subarray(SERIAL_AND_TYPE), 2);
  if (names === undefined || names.rest.length < VALIDITY) return undefined;
  const tail = readStrings(names.rest.subarray(VALIDITY), 5);
  if (tail === undefined || tail.rest.length > 0) return undefined;
  const [critical, extensions, , authority, signature] = tail.strings;
  const [id, list] = names.strings;
  const principals = allStrings(list ?? Buffer.alloc(0));
  const criticalOptions = options(critical ?? Buffer.alloc(0));
  const permissions = options(extensions ?? Buffer.alloc(0));
  if (authority === undefined || signature === undefined || id === undefined) return undefined;
  if (principals === undefined || criticalOptions === undefined || permissions === undefined) return undefined;
  const type = base.startsWith('sk-') ? `${base}${DOMAIN}` : base;
  return {
    type,
    key: Buffer.concat([wireString(type), ...head.strings.slice(2).map(wireString)]),
    serial: head.rest.readBigUInt64BE(),
    isOfUser: head.rest.readUInt32BE(8) === OF_USER,
    id: readable(id),
    principals: principals.map((principal) => principal.toString('utf8')),
    validAfter: names.rest.readBigUInt64BE(),
    validBefore: names.rest.readBigUInt64BE(8),
    criticalOptions,
    extensions: new Set(permissions.keys()),
    authority,
    signed: blob.subarray(0, blob.length - 4 - signature.length),
    signature,
  };
}

/** Whether the address is in a list of addresses and networks with commas between them, as `source-address` has it. */
function isAmong(address: string, list: string): boolean {
  const known = new BlockList();
  try {
    for (const entry of list.split(',')) {
      const [network = '', bits] = entry.trim().split('/', 2);
      const family = isIP(network) === 6 ? 'ipv6' : 'ipv4';
      if (bits === undefined) known.addAddress(network, family);
      else known.addSubnet(network, Number(bits), family);
    }
  } catch {
    return false;
  }
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
  return known.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4');
}

export interface CertificateUse {
  /** Names of whom the certificate must name one. */
  principals: readonly string[];
  /** Of the client. */
  address: string;
  /** Milliseconds since 1970. */
  now: number;
}

function dateOf(seconds: bigint): string {
  const ms = seconds * 1000n;
  return ms > 8_640_000_000_000_000n ? 'the end of time' : new Date(Number(ms)).toISOString();
}

/** Why a certificate whose signatures hold logs nobody in, to be read after "is"; undefined when it does. */
export function refusalOf(certificate: Certificate, { principals, address, now }: CertificateUse): string | undefined {
  const { criticalOptions, isOfUser, validAfter, validBefore } = certificate;
  const seconds = BigInt(Math.floor(now / 1000));
  if (!isOfUser) return 'of a host, and not of a user';
  if (seconds < validAfter) return `not valid before ${dateOf(validAfter)}`;
  if (seconds >= validBefore) return `not valid since ${dateOf(validBefore)}`;
  if (!certificate.principals.some((name) => principals.includes(name))) {
    return `for ${certificate.principals.join(', ') || 'nobody'}, and this login needs one for ${principals.join(' or ')}`;
  }
  for (const [option, data] of criticalOptions) {
    if (option !== 'source-address')
      return `restricted by ${readable(Buffer.from(option))}, which Berth cannot enforce`;
    const list = readStrings(data, 1)?.strings[0]?.toString('latin1') ?? '';
    if (!isAmong(address, list)) return `not for clients at ${address}`;
  }
  return undefined;
}

/** Whether a client may do what certificates permit one by one. A plain key permits all of it. */
export function permits(
  { certificate }: { certificate?: Certificate },
  what: 'permit-pty' | 'permit-port-forwarding',
): boolean {
  return certificate === undefined || certificate.extensions.has(what);
}
