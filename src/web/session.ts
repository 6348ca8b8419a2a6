import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { userSchema } from './reviews.ts';

const IV_BYTES = 12;
const TAG_BYTES = 16;

/** A value as a text that only who has the key can read or make (AES-256-GCM, a key of 32 bytes). */
export function seal(value: unknown, key: Buffer): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  const parts = [iv, cipher.update(JSON.stringify(value), 'utf8'), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat(parts).toString('base64url');
}

/** The value in a text; undefined when it is forged, damaged or sealed with another key. */
export function unseal(text: string, key: Buffer): unknown {
  const sealed = Buffer.from(text, 'base64url');
  if (sealed.length < IV_BYTES + TAG_BYTES) return undefined;
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, IV_BYTES));
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    const clear = Buffer.concat([decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]);
    return JSON.parse(clear.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Milliseconds since the epoch. */
const expires = z.number();
/** Of this sign-in: see {@link newSessionId}. A replica of an earlier version gives none. */
const id = z.string().optional();
/** Somebody who signed in with a Kubernetes token, which is for the dashboard alone. */
const tokenSessionSchema = z.object({ id, token: z.string(), expires });
/** Somebody who signed in at the OpenID provider: who that is, and the access token that asks the provider again. */
const providerSessionSchema = z.object({
  id,
  access: z.string(),
  subject: z.string(),
  user: userSchema,
  /** Whether the provider names groups when it is asked again. Then one that names none has none. */
  namesGroups: z.boolean().default(false),
  expires,
});
const sessionSchema = z.union([tokenSessionSchema, providerSessionSchema]);
export type TokenSession = z.infer<typeof tokenSessionSchema>;
export type ProviderSession = z.infer<typeof providerSessionSchema>;
export type Session = TokenSession | ProviderSession;

/** Browsers store cookies of at most 4096 bytes, name and attributes included. */
const MAX_SEALED = 3800;

/** The session is longer than a cookie can carry. */
export class SessionTooLargeError extends Error {
  override name = 'SessionTooLargeError';
}

/** What a session stands on: it ends with this. */
export function credentialOf(session: Session): string {
  return 'token' in session ? session.token : session.access;
}

/** Characters of a hash that tell the people of an installation apart. */
const PERSON_LENGTH = 16;
const ID_BYTES = 12;

/** An id for one sign-in, which begins with its person. It is good as the name of a field of a Secret. */
export function newSessionId(username: string): string {
  return `${hash('sha256', username).slice(0, PERSON_LENGTH)}.${randomBytes(ID_BYTES).toString('base64url')}`;
}

/** The same for all sessions of one person. */
export function personOf(sessionId: string): string {
  return sessionId.slice(0, PERSON_LENGTH);
}

/** Which sign-in it is. Two with the same token are two. */
export function sessionIdOf(session: Session): string {
  return session.id ?? hash('sha256', credentialOf(session));
}

/**
 * A session as a cookie, sealed: only replicas can read it. It has the token, so that every replica can ask again whether
 * the token still holds.
 */
export function sealSession(session: Session, key: Buffer): string {
  const text = seal(session, key);
  if (text.length > MAX_SEALED) throw new SessionTooLargeError('The token is too long for a session cookie.');
  return text;
}

/** The session in a cookie; undefined when it is forged, damaged, expired or sealed with another key. */
export function openSession(text: string, options: { key: Buffer; now: number }): Session | undefined {
  const session = sessionSchema.safeParse(unseal(text, options.key));
  return session.success && session.data.expires > options.now ? session.data : undefined;
}
