import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';

const passSchema = z.object({
  /** A ticket opens once and makes a cookie; neither stands in for the other. */
  kind: z.enum(['ticket', 'cookie']),
  id: z.string(),
  namespace: z.string(),
  instance: z.string(),
  uid: z.string(),
  port: z.number(),
  /** metadata.uid of the API key that asked: when it ends, so does this. */
  keyId: z.string(),
  /** Where the browser goes first. */
  path: z.string(),
  /** Milliseconds since the epoch. */
  expires: z.number(),
});

/** Leave to use one port of one instance for a while. */
export type Pass = z.infer<typeof passSchema>;

const MAX_LENGTH = 2048;

function macOf(payload: string, key: Buffer): Buffer {
  return createHmac('sha256', key).update(payload).digest();
}

/** The key that signs passes, from the one that all replicas share for sessions. */
export function passKey(sessionKey: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', sessionKey, '', 'berth instance proxy', 32));
}

export function signPass(pass: Pass, key: Buffer): string {
  const payload = Buffer.from(JSON.stringify(pass)).toString('base64url');
  return `${payload}.${macOf(payload, key).toString('base64url')}`;
}

/** The pass in a text; undefined when it is forged, damaged, over or of the other kind. */
export function readPass(
  text: string | undefined,
  options: { key: Buffer; kind: Pass['kind']; now: number },
): Pass | undefined {
  if (text === undefined || text.length > MAX_LENGTH) return undefined;
  const [payload = '', mac = ''] = text.split('.', 2);
  const given = Buffer.from(mac, 'base64url');
  const expected = macOf(payload, options.key);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  const pass = passSchema.parse(JSON.parse(Buffer.from(payload, 'base64url').toString()));
  return pass.kind === options.kind && pass.expires > options.now ? pass : undefined;
}
