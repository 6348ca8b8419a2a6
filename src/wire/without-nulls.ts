/** The object without fields that are null or undefined: null equals absent. */
export function withoutNulls<T extends object>(body: T): { [K in keyof T]: Exclude<T[K], null> } {
  const entries = Object.entries(body).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], null> };
}
