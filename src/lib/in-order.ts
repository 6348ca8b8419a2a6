/** Whether a text has all these parts, one behind the other. A pattern with `.*` between them would start anew at each. */
export function hasInOrder(text: string, parts: readonly string[]): boolean {
  let at = 0;
  return parts.every((part) => {
    const found = text.indexOf(part, at);
    at = found + part.length;
    return found !== -1;
  });
}
