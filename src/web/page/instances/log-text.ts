// What ECMA-48 has for terminals: control sequences, such as colours, and strings, such as titles.
// oxlint-disable-next-line no-control-regex
const SEQUENCE = /\u001b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-Z\\-~])/g;

/** A line of a log as a terminal would leave it, in one colour: a bar of progress writes over itself. */
export function logText(text: string): string {
  const written = text.replaceAll(SEQUENCE, '').split('\r');
  return written.findLast((part) => part !== '') ?? '';
}
