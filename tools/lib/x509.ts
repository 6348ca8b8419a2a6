import { createHash, createPrivateKey, generateKeyPairSync, randomBytes, sign, X509Certificate } from 'node:crypto';
import { isIPv4 } from 'node:net';

/** A certificate and its private key, both PEM. */
export interface Identity {
  certificate: string;
  key: string;
}

export interface LeafRequest {
  commonName: string;
  /** Kubernetes reads organisations as groups. */
  organisation?: string;
  /** Host names and IPv4 addresses a server answers to; none for a client certificate. */
  hosts?: readonly string[];
}

/** Days a certificate is valid. A local cluster makes new ones at every start. */
const VALID_DAYS = 365;

const OID = {
  commonName: '2.5.4.3',
  organisation: '2.5.4.10',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
} as const;

/** A new self-signed certificate authority (P-256, RFC 5280 profile). */
export function createAuthority(commonName: string): Identity {
  const { key, spki } = newKey();
  const extensions = [
    extension(OID.basicConstraints, sequence(boolean(true)), true),
    // keyCertSign and cRLSign: bits 5 and 6, counted from the most significant one.
    extension(OID.keyUsage, tlv(0x03, Buffer.from([1, 0x06])), true),
    extension(OID.subjectKeyIdentifier, tlv(0x04, keyIdentifier(spki))),
  ];
  const name = distinguishedName({ commonName });
  return { certificate: certify({ spki, subject: name, issuer: name, extensions }, key), key };
}

/** A server or client certificate signed by the authority. */
export function issue(authority: Identity, request: LeafRequest): Identity {
  const { key, spki } = newKey();
  const issuer = new X509Certificate(authority.certificate);
  const issuerSpki = issuer.publicKey.export({ type: 'spki', format: 'der' });
  const hosts = request.hosts ?? [];
  const extensions = [
    extension(OID.basicConstraints, sequence(), true),
    // digitalSignature: bit 0.
    extension(OID.keyUsage, tlv(0x03, Buffer.from([7, 0x80])), true),
    extension(OID.extendedKeyUsage, sequence(objectId(OID.serverAuth), objectId(OID.clientAuth))),
    extension(OID.subjectKeyIdentifier, tlv(0x04, keyIdentifier(spki))),
    extension(OID.authorityKeyIdentifier, sequence(tlv(0x80, keyIdentifier(issuerSpki)))),
    ...(hosts.length === 0 ? [] : [extension(OID.subjectAltName, sequence(...hosts.map(generalName)))]),
  ];
  const certificate = certify(
    {
      spki,
      subject: distinguishedName(request),
      issuer: distinguishedName({ commonName: issuer.subject.replace(/^CN=/, '') }),
      extensions,
    },
    authority.key,
  );
  return { certificate, key };
}

interface CertificateParts {
  spki: Buffer;
  subject: Buffer;
  issuer: Buffer;
  extensions: readonly Buffer[];
}

function certify({ spki, subject, issuer, extensions }: CertificateParts, signingKey: string): string {
  const algorithm = sequence(objectId(OID.ecdsaWithSha256));
  // An hour back: clocks of containers and hosts differ.
  const from = new Date(Date.now() - 3_600_000);
  const until = new Date(from.getTime() + VALID_DAYS * 86_400_000);
  const tbs = sequence(
    tlv(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    algorithm,
    issuer,
    sequence(utcTime(from), utcTime(until)),
    subject,
    spki,
    tlv(0xa3, sequence(...extensions)),
  );
  const signature = sign('sha256', tbs, createPrivateKey(signingKey));
  const der = sequence(tbs, algorithm, bitString(signature));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function newKey(): { key: string; spki: Buffer } {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    key: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }),
    spki: pair.publicKey.export({ type: 'spki', format: 'der' }),
  };
}

function keyIdentifier(spki: Buffer): Buffer {
  return createHash('sha256').update(spki).digest().subarray(0, 20);
}

function distinguishedName({ commonName, organisation }: LeafRequest): Buffer {
  const attribute = (id: string, value: string) =>
    tlv(0x31, sequence(objectId(id), tlv(0x0c, Buffer.from(value, 'utf8'))));
  return sequence(
    ...(organisation === undefined ? [] : [attribute(OID.organisation, organisation)]),
    attribute(OID.commonName, commonName),
  );
}

function generalName(host: string): Buffer {
  if (isIPv4(host)) return tlv(0x87, Buffer.from(host.split('.').map(Number)));
  return tlv(0x82, Buffer.from(host, 'ascii'));
}

function extension(id: string, value: Buffer, critical = false): Buffer {
  return sequence(objectId(id), ...(critical ? [boolean(true)] : []), tlv(0x04, value));
}

/** One DER element (X.690 section 8.1): tag, length in its shortest form, contents. */
function tlv(tag: number, ...contents: readonly Buffer[]): Buffer {
  const body = Buffer.concat(contents);
  const header = [tag];
  if (body.length < 0x80) header.push(body.length);
  else if (body.length < 0x100) header.push(0x81, body.length);
  else header.push(0x82, body.length >> 8, body.length & 0xff);
  return Buffer.concat([Buffer.from(header), body]);
}

function sequence(...contents: readonly Buffer[]): Buffer {
  return tlv(0x30, ...contents);
}

function integer(value: Buffer): Buffer {
  return tlv(0x02, value);
}

function boolean(value: boolean): Buffer {
  return tlv(0x01, Buffer.from([value ? 0xff : 0]));
}

function bitString(value: Buffer): Buffer {
  return tlv(0x03, Buffer.from([0]), value);
}

/** YYMMDDHHMMSSZ; RFC 5280 wants this form for years before 2050. */
function utcTime(date: Date): Buffer {
  const digits = date.toISOString().replaceAll(/\D/g, '').slice(2, 14);
  return tlv(0x17, Buffer.from(`${digits}Z`, 'ascii'));
}

function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc & 0x7f];
    for (let left = arc >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return tlv(0x06, Buffer.from(bytes));
}
