import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { z } from 'zod';

/** The token is for the dashboard alone. */
const sessionSchema = z.object({ token: z.string(), expires: z.number() });
export type Session = z.infer<typeof sessionSchema>;

const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Browsers store cookies of at most 4096 bytes, name and attributes included. */
const MAX_SEALED = 3800;

/** The token is longer than a cookie can carry. */
export class SessionTooLargeError extends Error {
  override name = 'SessionTooLargeError';
}

/**
 * A session as a cookie, encrypted and authenticated (AES-256-GCM, a key of 32 bytes): only replicas can read it. It has
 * the Kubernetes token, so that every replica can ask the cluster again whether the token still holds.
 */
export function sealSession(session: Session, key: Buffer): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  const sealed = Buffer.concat([
    iv,
    cipher.update(JSON.stringify(session), 'utf8'),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
  const text = sealed.toString('base64url');
  if (text.length > MAX_SEALED) throw new SessionTooLargeError('The token is too long for a session cookie.');
  return text;
}

/** The session in a cookie; undefined when it is forged, damaged, expired or sealed with another key. */
export function openSession(text: string, options: { key: Buffer; now: number }): Session | undefined {
  const sealed = Buffer.from(text, 'base64url');
  if (sealed.length < IV_BYTES + TAG_BYTES) return undefined;
  try {
    const decipher = createDecipheriv('aes-256-gcm', options.key, sealed.subarray(0, IV_BYTES));
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    const clear = Buffer.concat([decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]);
    const session = sessionSchema.parse(JSON.parse(clear.toString('utf8')));
    return session.expires > options.now ? session : undefined;
  } catch {
    return undefined;
  }
}
