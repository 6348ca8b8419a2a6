import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sinceOf } from '../../../src/http/features/logs/read.ts';
import { logQuerySchema } from '../../../src/http/features/logs/schema.ts';
import { idOf, LineCursor, positionOf } from '../../../src/http/features/logs/position.ts';

function lineAt(second: number) {
  return { time: `2026-01-01T00:00:${String(second).padStart(2, '0')}.000000000Z`, text: '' };
}

describe('the time since when', () => {
  const NOW = Date.UTC(2026, 0, 2);

  it.each([
    ['2026-01-01T00:00:00.123456789Z', '2026-01-01T00:00:00.123456789Z'],
    ['2026-01-01T00:00:00.1234567890123Z', '2026-01-01T00:00:00.123000000Z'],
    ['0000-01-01T00:00:00+14:00', '1970-01-01T00:00:00.000000000Z'],
    ['1h30m', '2026-01-01T22:30:00.000000000Z'],
    [`${'9'.repeat(31)}h`, '1970-01-01T00:00:00.000000000Z'],
  ])('%s', (since, stamp) => {
    expect(logQuerySchema.parse({ since }).since).toBe(since);
    expect(sinceOf(since, NOW)).toBe(stamp);
  });
});

describe('where a line stands', () => {
  it('is in its id, and nothing else is one', () => {
    const position = { start: 3, time: lineAt(1).time, count: 2 };
    expect(positionOf(idOf(position))).toEqual(position);
    for (const id of [undefined, '', '17', '3-2026-01-01T00:00:61.000000000Z-0', `${idOf(position)}\n`]) {
      expect(positionOf(id)).toBeUndefined();
    }
  });

  it('lets a reader go on after any line, at any overlap, and lose and repeat nothing', () => {
    const log = fc.array(fc.nat(5), { minLength: 1 }).map((seconds) => seconds.toSorted((a, b) => a - b).map(lineAt));
    fc.assert(
      fc.property(log, fc.nat(), (lines, pick) => {
        const at = pick % lines.length;
        const first = new LineCursor(1, undefined);
        const ids = lines.map((line) => idOf(first.admit(line)?.position ?? { start: 0, time: '', count: 0 }));
        expect(new Set(ids).size).toBe(lines.length);
        const second = new LineCursor(1, positionOf(ids[at]));
        // As the kubelet answers: from the begin of a second on.
        const again = lines.filter(({ time }) => time >= (lines[at]?.time ?? ''));
        const seen = again.flatMap((line) => second.admit(line) ?? []);
        expect(seen.map(({ position }) => idOf(position))).toEqual(ids.slice(at + 1));
        expect(seen.some(({ gap }) => gap)).toBe(false);
      }),
    );
  });

  it('says that lines may be missing when the last one is not there again', () => {
    const after = { start: 1, time: lineAt(1).time, count: 1 };
    const cursor = new LineCursor(1, after);
    expect(cursor.admit(lineAt(1))).toBeUndefined();
    expect(cursor.admit(lineAt(2))).toMatchObject({ gap: true });
    expect(cursor.admit(lineAt(3))).toMatchObject({ gap: false });
  });
});
