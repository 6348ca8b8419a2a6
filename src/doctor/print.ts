import { plain, plainJson } from '../wire/plain.ts';
import type { Finding, Severity } from './finding.ts';
import type { Report } from './examine.ts';

const WIDTH = 100;
const INDENT = '           ';

function wrap(text: string): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + word.length + 1 > WIDTH) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** A command stays on one line, so that it can be pasted. */
function findingLines({ severity, message, why, remedy }: Finding): string[] {
  const [first = '', ...rest] = wrap(plain(message));
  return [
    `  ${severity.padEnd(9)}${first}`,
    ...rest.map((line) => `${INDENT}${line}`),
    ...wrap(plain(why)).map((line) => `${INDENT}${line}`),
    `${INDENT}$ ${plain(remedy)}`,
  ];
}

/** `1 disk`, `2 disks`. */
export function count(number: number, one: string): string {
  return `${number} ${one}${number === 1 ? '' : 's'}`;
}

/** For people: what is wrong, check by check, and in one line what is sound. */
export function printReport({ namespace, kubernetes, checks }: Report): string {
  const wrong = checks.filter(({ findings }) => findings.length > 0);
  const all = wrong.flatMap(({ findings }) => findings);
  const of = (severity: Severity): number => all.filter((one) => one.severity === severity).length;
  const sections = wrong.map(({ title, findings }) =>
    [`not so: ${title}`, ...findings.flatMap(findingLines), ''].join('\n'),
  );
  const sound = checks.length - wrong.length;
  const sums = [count(of('error'), 'error'), count(of('warning'), 'warning'), `${of('unknown')} unknown`].join(', ');
  return [
    `Berth in namespace ${plain(namespace)}, Kubernetes ${plain(kubernetes)}`,
    '',
    ...sections,
    `${count(checks.length, 'check')}: ${sound} found nothing. ${sums}.`,
    '',
  ].join('\n');
}

/** For programs. Fields are added and never renamed. */
export function printJson({ namespace, kubernetes, checks }: Report): string {
  const findings = checks.flatMap((one) => one.findings);
  const sound = checks.filter((one) => one.findings.length === 0).map(({ name }) => name);
  return `${plainJson({ namespace, kubernetes, findings, sound }, 2)}\n`;
}
