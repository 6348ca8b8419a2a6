import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { cpuTime } from '../../support/cpu-time.ts';
import { growingText } from '../../support/expressions/growth.ts';
import { expressionsOf } from '../../support/expressions/scan.ts';

const ROOT = join(import.meta.dirname, '../../..');

function problemsOf(path: string, text: string): string[] {
  return expressionsOf(path, text).flatMap(({ line, expression }) => {
    const at = `${path}:${line}`;
    if (expression === undefined) return [`${at} is made while the program runs: write it as a literal`];
    const grows = growingText(expression);
    return grows === undefined ? [] : [`${at} ${expression} takes more than linear time on ${JSON.stringify(grows)}`];
  });
}

/** Of each kind, with what makes the expression fail around many repeats of the text that was found. */
const GROWING: readonly [RegExp, before: string, after: string][] = [
  [/=+$/, '', '~'],
  [/(\/api\/v1)+$/, '', '~'],
  [/^\d+\.?\d*$/, '', '~'],
  [/^(?:a|ab?c?)*$/, '', '~'],
  [/^(a+)+$/, '', '~'],
  [/^(?:a?b?)*$/, '', '~'],
  [/^(?:a{1,300})*$/, '', '~'],
  [/^.*,.*;$/, '', '~'],
  [/\[([^\]]*)\]\(/, '', ''],
  [/is forbidden: .*quota/i, '', ''],
  [/(?=a*!)[ab]/, '', ''],
  [/x(?:x*y)?/g, '', ''],
  [/[a-z]+@/i, '', ''],
  [/@.*$/, '', '\n'],
];

/** With what a file needs around it to be one of the product. */
const PLANTED: readonly [text: string, problem: RegExp][] = [
  ["export const text = (name: string): string => name.replace(/=+$/, '');", /linear time on "=+"/],
  ["const DIGITS = '[0-9]+';\nexport const AMOUNT = new RegExp(`^${DIGITS}\\\\.?${DIGITS}$`);", /linear time/],
  ['export const any = (text: string): RegExp => RegExp(text);', /literal/],
  ["export const again = String.raw`x`;\nexport const one = new RegExp('(a+)+b', 'g');", /linear time/],
];

const LINEAR = [
  /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
  /\s+/g,
  /^\s*\{\s*"input"\s*:\s*"/,
  /(?:^|,)\s*text\/event-stream\s*(?:;|,|$)/i,
  /-(\d{1,9})$/,
  /^[ \t]*k:.*;/m,
  /^([0-9]+(\.[0-9]+)?(s|m|h))+$/,
  /(?<=\d),(?=\d{3}\b)/g,
  /[, ]*(\w+)="((?:[^"\\]|\\.)*)"/gy,
];

describe('regular expressions', () => {
  it('of the product take linear time on whatever they read', () => {
    const paths = globSync('src/**/*.{ts,tsx}', { cwd: ROOT });
    expect(paths.length).toBeGreaterThan(400);
    expect(paths.flatMap((path) => problemsOf(path, readFileSync(join(ROOT, path), 'utf8')))).toEqual([]);
  });

  it.each(PLANTED)('that are planted in a file are found: %s', (text, problem) => {
    expect(problemsOf('src/planted.ts', text)).toEqual([expect.stringMatching(problem)]);
  });

  it.each(LINEAR)('that take linear time are none of them: %s', (expression) => {
    expect(growingText(expression)).toBeUndefined();
  });

  it.each(GROWING)('take as long as the judge says: %s', async (expression, before, after) => {
    const text = growingText(expression) ?? '';
    const long = (repeats: number): string => before + text.repeat(Math.ceil(repeats / text.length)) + after;
    const read = (input: string): unknown =>
      runInNewContext('input.match(expression)', { input, expression }, { timeout: 200 });
    // What does not end within the limit, which holds for 60 characters too, grows beyond all bounds.
    const ended = (input: string): boolean => {
      try {
        read(input);
        return true;
      } catch {
        return false;
      }
    };
    if (!ended(long(60)) || !ended(long(120_000))) return;
    const [short, four] = [await cpuTime(() => read(long(30_000))), await cpuTime(() => read(long(120_000)))];
    expect(four / short).toBeGreaterThan(8);
  });
});
