import { z } from 'zod';
import { userSchema } from './reviews.ts';
import { seal, unseal } from './sealed.ts';

/** Milliseconds since the epoch. */
const expires = z.number();
/** Somebody who signed in with a Kubernetes token, which is for the dashboard alone. */
const tokenSessionSchema = z.object({ token: z.string(), expires });
/** Somebody who signed in at the OpenID provider: who that is, and the access token that asks the provider again. */
const providerSessionSchema = z.object({ access: z.string(), subject: z.string(), user: userSchema, expires });
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
