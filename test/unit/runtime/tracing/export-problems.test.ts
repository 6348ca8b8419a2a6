import { pino } from 'pino';
import { expect, it } from 'vitest';
import { ExportProblems } from '../../../../src/runtime/tracing/export-problems.ts';
import { fakeClock } from '../../../support/fake-clock.ts';

it('adds up what is lost between two lines, which are a minute apart', async () => {
  const lines: Record<string, unknown>[] = [];
  const clock = fakeClock();
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) });
  const problems = new ExportProblems(log, clock);
  problems.note(new Error('connect ECONNREFUSED'), 3);
  problems.note(new Error('connect ECONNREFUSED'), 4);
  await clock.advance(59_999);
  problems.note(new Error('connect ECONNREFUSED'), 5);
  expect(lines.map(({ spans }) => spans)).toEqual([3]);
  await clock.advance(1);
  problems.note(new Error('Not Found'), 6);
  expect(lines.map(({ spans, reason }) => [spans, reason])).toEqual([
    [3, 'connect ECONNREFUSED'],
    [15, 'Not Found'],
  ]);
});
