import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';

const accessTokenSchema = z.object({
  /** A ticket stands in a link and is turned into a cookie once. Neither works in the place of the other. */
  kind: z.enum(['ticket', 'cookie']),
  id: z.string(),
  namespace: z.string(),
  instance: z.string(),
  uid: z.string(),
  port: z.number(),
  /** metadata.uid of the API key that asked for it; when that key ends, so does this. */
  keyId: z.string(),
  /** SHA-256 of the session of the person that comes beside it; absent for an API key. */
  session: z.string().optional(),
  /** Where the browser goes first. */
  path: z.string(),
  /** Milliseconds since the epoch. */
  expires: z.number(),
});

/** Lets a browser use one port of one instance for a while. */
export type AccessToken = z.infer<typeof accessTokenSchema>;

const MAX_LENGTH = 2048;

function macOf(payload: string, key: Buffer): Buffer {
  return createHmac('sha256', key).update(payload).digest();
}

/** The key that signs access tokens, derived from the one that all replicas share for sessions. */
export function signingKey(sessionKey: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', sessionKey, '', 'berth instance proxy', 32));
}

export function signAccessToken(token: AccessToken, key: Buffer): string {
  const payload = Buffer.from(JSON.stringify(token)).toString('base64url');
  return `${payload}.${macOf(payload, key).toString('base64url')}`;
}

/** The token in a text; undefined when it is forged, damaged, expired or of the other kind. */
export function readAccessToken(
  text: string | undefined,
  options: { key: Buffer; kind: AccessToken['kind']; now: number },
): AccessToken | undefined {
  if (text === undefined || text.length > MAX_LENGTH) return undefined;
  const [payload = '', mac = ''] = text.split('.', 2);
  const given = Buffer.from(mac, 'base64url');
  const expected = macOf(payload, options.key);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  const token = accessTokenSchema.parse(JSON.parse(Buffer.from(payload, 'base64url').toString()));
  return token.kind === options.kind && token.expires > options.now ? token : undefined;
}
