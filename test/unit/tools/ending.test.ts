import { expect, test, vi } from 'vitest';
import { Ending } from '../../../tools/lib/ending.ts';

test('signals of one second are one Ctrl-C; a later one exits at once', () => {
  let time = 5000;
  const exit = vi.fn<(code: number) => void>();
  const ending = new Ending(() => time, exit);
  expect(ending.signal.aborted).toBe(false);
  for (const later of [0, 3, 996]) {
    time += later;
    ending.request();
    expect(ending.signal.aborted).toBe(true);
  }
  expect(exit).not.toHaveBeenCalled();
  time += 1;
  ending.request();
  expect(exit).toHaveBeenCalledWith(130);
});
