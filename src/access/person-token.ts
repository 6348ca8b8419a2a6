import { createPrivateKey, createPublicKey, hkdfSync, type KeyObject, type webcrypto } from 'node:crypto';
import { SignJWT } from 'jose/jwt/sign';
import { jwtVerify } from 'jose/jwt/verify';
import { z } from 'zod';
import { PRINCIPAL_SCOPES, type Principal } from './principal.ts';

const claimsSchema = z
  .strictObject({
    iss: z.string(),
    aud: z.string(),
    /** The sign-in, as a hash. */
    sub: z.string().regex(/^[0-9a-f]{16,64}$/),
    exp: z.number(),
    username: z.string().min(1),
    /** The tenant. */
    namespace: z.string().min(1),
    scopes: z.array(z.enum(PRINCIPAL_SCOPES)),
    /** When the sign-in ends, in ms since the epoch. */
    until: z.number(),
    /** What the dashboard asks again with. Nobody else can read it. */
    session: z.string(),
  })
  .transform(({ iss: _iss, aud: _aud, sub: id, exp, ...others }) => ({ ...others, id, expires: exp * 1000 }));

/**
 * What a person who signed in to the dashboard may do in one tenant for some seconds. `expires` is in ms since the epoch;
 * a token has whole seconds, so the rest is cut off.
 */
export type PersonClaims = z.output<typeof claimsSchema>;

/** A type of its own, so that no other JWT is taken for one (RFC 8725, 3.11). */
const HEADER = { alg: 'EdDSA', typ: 'berth-person+jwt' };
const MEANT_FOR = { issuer: 'berth-dashboard', audience: 'berth-api' };
/** All tokens begin with the same header. */
const START = `${Buffer.from(JSON.stringify(HEADER)).toString('base64url')}.`;
/** Characters. The session is as long as a cookie may be, and a third longer in base64. */
const MAX_LENGTH = 7168;
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

/** Says nothing about the signature. */
export function isPersonToken(token: string): boolean {
  return token.startsWith(START);
}

export function signPersonToken(claims: PersonClaims, signingKey: KeyObject): Promise<string> {
  const { id, username, expires, ...others } = claims;
  return new SignJWT({ ...others, username: username.slice(0, MAX_NAME) })
    .setProtectedHeader(HEADER)
    .setIssuer(MEANT_FOR.issuer)
    .setAudience(MEANT_FOR.audience)
    .setSubject(id)
    .setExpirationTime(Math.floor(expires / 1000))
    .sign(signingKey);
}

/** What a token says; undefined when it is forged, damaged or over. */
export async function readPersonToken(
  token: string,
  options: { key: KeyObject; now: number },
): Promise<PersonClaims | undefined> {
  if (!isPersonToken(token) || token.length > MAX_LENGTH) return undefined;
  const wanted = { ...MEANT_FOR, typ: HEADER.typ, algorithms: [HEADER.alg], currentDate: new Date(options.now) };
  const verified = await jwtVerify(token, options.key, wanted).catch(() => undefined);
  return claimsSchema.safeParse(verified?.payload).data;
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
