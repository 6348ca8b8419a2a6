import { createPrivateKey, createPublicKey, hkdfSync, type KeyObject, sign, verify, type webcrypto } from 'node:crypto';
import { z } from 'zod';
import { PRINCIPAL_SCOPES, type Principal } from './principal.ts';

const claimsSchema = z.strictObject({
  /** The sign-in, as a hash. */
  id: z.string().regex(/^[0-9a-f]{16,64}$/),
  username: z.string().min(1),
  /** The tenant. */
  namespace: z.string().min(1),
  scopes: z.array(z.enum(PRINCIPAL_SCOPES)),
  /** When the token ends, in ms since the epoch. */
  expires: z.number(),
  /** When the sign-in ends, in ms since the epoch. */
  until: z.number(),
});

/** What a person who signed in to the dashboard may do in one tenant for some seconds. */
export type PersonClaims = z.infer<typeof claimsSchema>;

const PREFIX = 'berth-person.';
/** Characters. The dashboard cuts the name of the user so that a token is shorter. */
const MAX_LENGTH = 2048;
/** Characters of a user's name in a token. It is for the log alone. */
const MAX_NAME = 256;
/** RFC 8410: what stands before the 32 bytes of an Ed25519 private key. */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** The Ed25519 key that signs for people. All replicas of the dashboard derive the same one from their session key. */
export function personSigningKey(sessionKey: Buffer): KeyObject {
  const seed = Buffer.from(hkdfSync('sha256', sessionKey, '', 'berth person tokens', 32));
  return createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' });
}

/** What checks the signatures, and can make none. */
export function publicPart(signingKey: KeyObject): webcrypto.JsonWebKey {
  return createPublicKey(signingKey).export({ format: 'jwk' });
}

export function isPersonToken(token: string): boolean {
  return token.startsWith(PREFIX);
}

export function signPersonToken(claims: PersonClaims, signingKey: KeyObject): string {
  const short = { ...claims, username: claims.username.slice(0, MAX_NAME) };
  const payload = Buffer.from(JSON.stringify(short)).toString('base64url');
  return `${PREFIX}${payload}.${sign(null, Buffer.from(payload), signingKey).toString('base64url')}`;
}

/** What a token says; undefined when it is forged, damaged or over. */
export function readPersonToken(token: string, options: { key: KeyObject; now: number }): PersonClaims | undefined {
  if (!isPersonToken(token) || token.length > MAX_LENGTH) return undefined;
  const [payload = '', signature = ''] = token.slice(PREFIX.length).split('.', 2);
  if (!verify(null, Buffer.from(payload), options.key, Buffer.from(signature, 'base64url'))) return undefined;
  const claims = claimsSchema.safeParse(JSON.parse(Buffer.from(payload, 'base64url').toString()));
  return claims.success && claims.data.expires > options.now ? claims.data : undefined;
}

const KEY_ID = /^person\/[0-9a-f]+\/([0-9]+)$/;

/** The caller that a token stands for. Its id is the same for all tokens of a sign-in, and says when that ends. */
export function personPrincipal({ id, username, namespace, scopes, expires, until }: PersonClaims): Principal {
  return { keyId: `person/${id}/${until}`, namespace, name: username, scopes, vouchedUntil: expires };
}

/** When the sign-in of a caller ends, in ms since the epoch; undefined for an API key. */
export function signInEnd(keyId: string): number | undefined {
  const [, until] = KEY_ID.exec(keyId) ?? [];
  return until === undefined ? undefined : Number(until);
}
