import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { describe as describeStep, duration, OutputProgress } from '../../../tools/lib/progress.ts';

const STEP = { title: 'Building kubelet', index: 2, total: 11, next: 'kube-proxy', expect: 31 };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function record(isTty: boolean) {
  const written: string[] = [];
  const progress = new OutputProgress({ write: (text) => written.push(text), isTty, columns: 80 });
  return { written, progress };
}

describe('progress', () => {
  it('says the step, the time and what comes next', () => {
    expect(describeStep(STEP, 12_000, 100_000)).toBe(
      '[2/11] Building kubelet, 12 s of about 31 s (1 min 40 s in all); next: kube-proxy',
    );
  });

  it('writes a line per step and a heartbeat every ten seconds where no one sees a live line', () => {
    const { written, progress } = record(false);
    progress.step(STEP);
    vi.advanceTimersByTime(25_000);
    progress.end();
    expect(written).toHaveLength(4);
    expect(written[1]).toContain('10 s of about 31 s');
    expect(written[3]).toBe('[2/11] Building kubelet: done in 25 s\n');
    vi.advanceTimersByTime(60_000);
    expect(written).toHaveLength(4);
  });

  it('rewrites one line on a terminal and never wraps it', () => {
    const { written, progress } = record(true);
    progress.step({ ...STEP, title: 'x'.repeat(200) });
    vi.advanceTimersByTime(1000);
    for (const text of written) {
      expect(text).not.toContain('\n');
      expect(text.replace('\r\u001B[K', '').length).toBeLessThan(80);
    }
    expect(written.length).toBeGreaterThan(3);
    progress.end();
  });
});

describe('duration', () => {
  it.each([
    [0, '0 s'],
    [59_400, '59 s'],
    [332_000, '5 min 32 s'],
  ])('says %i ms as %s', (milliseconds, text) => {
    expect(duration(milliseconds)).toBe(text);
  });
});
