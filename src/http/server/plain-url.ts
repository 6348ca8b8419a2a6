/** What a program in an instance serves has its own URLs. */
const OF_PROGRAM = '/proxy/';
/** Percent-encoded letters, digits, hyphens, underscores and tildes. A dot stays: two of them would be another path. */
const ENCODED = /%(?:2d|3\d|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])/gi;
const MALFORMED = /%(?![\da-f]{2})/i;

/**
 * The URL with its path as people write it: what needs no percent-encoding means the same with and without it (RFC 3986
 * section 6.2.2.2). The query stays, and so does what belongs to a program in an instance.
 */
export function plainUrl(url: string): string {
  const ends = [url.search(/[?#]/), url.indexOf(OF_PROGRAM)].filter((at) => at >= 0);
  const end = Math.min(url.length, ...ends);
  const path = url.slice(0, end);
  // Of a sign without its number nothing is made that was not sent.
  if (!path.includes('%') || MALFORMED.test(path)) return url;
  return path.replaceAll(ENCODED, (one) => String.fromCharCode(Number.parseInt(one.slice(1), 16))) + url.slice(end);
}
