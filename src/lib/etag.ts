import { hash } from 'node:crypto';

export function etagOf(text: string | Buffer): string {
  return `W/"${hash('sha1', text, 'base64url')}"`;
}

/** Whether the client has this version, by weak comparison (RFC 9110 section 13.1.2). */
export function hasVersion(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  const opaque = etag.slice(2);
  return ifNoneMatch.split(',').some((one) => one.trim().replace(/^W\//, '') === opaque);
}
