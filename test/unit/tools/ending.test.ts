import { expect, test, vi } from 'vitest';
import { createEnding } from '../../../tools/lib/ending.ts';

test('signals of one second are one Ctrl-C; a later one exits at once', () => {
  let time = 5000;
  const exit = vi.fn<(code: number) => void>();
  const { signal, request } = createEnding({ now: () => time, exit });
  expect(signal.aborted).toBe(false);
  for (const later of [0, 3, 996]) {
    time += later;
    request();
    expect(signal.aborted).toBe(true);
  }
  expect(exit).not.toHaveBeenCalled();
  time += 1;
  request();
  expect(exit).toHaveBeenCalledWith(130);
});
