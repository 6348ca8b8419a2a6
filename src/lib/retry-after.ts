/** The wait that a Retry-After header asks for (RFC 9110, 10.2.3: seconds or a date), in milliseconds. */
export function retryAfterMs(header: string | string[] | undefined, now: number): number | undefined {
  const value = Array.isArray(header) ? header[0] : header;
  if (value === undefined) return undefined;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  // An HTTP date begins with the name of a day. Date.parse alone would take '1.5' for a date too.
  const date = /^[A-Z]/.test(value) ? Date.parse(value) : NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
