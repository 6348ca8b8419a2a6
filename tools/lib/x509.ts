// @peculiar/x509 finds its parts by metadata of classes, which JavaScript has only after this.
import 'reflect-metadata';
import { createPrivateKey, KeyObject, type webcrypto } from 'node:crypto';
import { isIPv4 } from 'node:net';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  type JsonName,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

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
const KEYS = { name: 'ECDSA', namedCurve: 'P-256' };
const SIGNATURE = { name: 'ECDSA', hash: 'SHA-256' };

/** A new self-signed certificate authority. */
export async function createAuthority(commonName: string): Promise<Identity> {
  const keys = await newKeys();
  const extensions = [
    new BasicConstraintsExtension(true, undefined, true),
    new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    await SubjectKeyIdentifierExtension.create(keys.publicKey),
  ];
  const made = { name: [{ CN: [commonName] }], keys, extensions, signingAlgorithm: SIGNATURE, ...validity() };
  return identity(await X509CertificateGenerator.createSelfSigned(made), keys.privateKey);
}

/** A server or client certificate signed by the authority. */
export async function issue(authority: Identity, request: LeafRequest): Promise<Identity> {
  const keys = await newKeys();
  const issuer = new X509Certificate(authority.certificate);
  const names = (request.hosts ?? []).map((value) => ({
    type: isIPv4(value) ? ('ip' as const) : ('dns' as const),
    value,
  }));
  const extensions: Extension[] = [
    new BasicConstraintsExtension(false, undefined, true),
    new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
    new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
    await SubjectKeyIdentifierExtension.create(keys.publicKey),
    await AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ...(names.length === 0 ? [] : [new SubjectAlternativeNameExtension(names)]),
  ];
  const subject: JsonName = [
    ...(request.organisation === undefined ? [] : [{ O: [request.organisation] }]),
    { CN: [request.commonName] },
  ];
  const signingKey = createPrivateKey(authority.key).toCryptoKey(KEYS, false, ['sign']);
  const { publicKey } = keys;
  const made = { subject, issuer: issuer.subject, publicKey, signingKey, extensions, signingAlgorithm: SIGNATURE };
  return identity(await X509CertificateGenerator.create({ ...made, ...validity() }), keys.privateKey);
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return crypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);
}

function validity(): { notBefore: Date; notAfter: Date } {
  // An hour back: clocks of containers and hosts differ.
  const notBefore = new Date(Date.now() - 3_600_000);
  return { notBefore, notAfter: new Date(notBefore.getTime() + VALID_DAYS * 86_400_000) };
}

function identity(certificate: X509Certificate, privateKey: CryptoKey): Identity {
  const key = KeyObject.from(privateKey).export({ type: 'pkcs8', format: 'pem' });
  return { certificate: `${certificate.toString('pem')}\n`, key };
}
