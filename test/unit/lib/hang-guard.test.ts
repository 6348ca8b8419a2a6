import { expect, it, vi } from 'vitest';
import { HangGuard, HangingError } from '../../../src/lib/hang-guard.ts';
import { fakeClock } from '../../support/fake-clock.ts';

it('lets a hang cost one call its time, and one every five seconds', async () => {
  const clock = fakeClock();
  const guard = new HangGuard(clock);
  const hang = vi.fn(async () => {
    await clock.sleep(2000);
    throw new DOMException('too late', 'TimeoutError');
  });
  const first = guard.ask(hang).catch((error: unknown) => error);
  await clock.advance(2000);
  expect(await first).toMatchObject({ name: 'TimeoutError' });
  for (let call = 0; call < 100; call += 1) await expect(guard.ask(hang)).rejects.toThrow(HangingError);
  await clock.advance(5000);
  const trial = guard.ask(hang).catch((error: unknown) => error);
  await expect(guard.ask(hang)).rejects.toThrow(HangingError);
  await clock.advance(2000);
  expect(await trial).toMatchObject({ name: 'TimeoutError' });
  expect(hang).toHaveBeenCalledTimes(2);
  await clock.advance(5000);
  expect(await guard.ask(() => Promise.resolve('back'))).toBe('back');
  expect(await guard.ask(() => Promise.resolve('again'))).toBe('again');
});

it('lets through what is refused, however late: a caller who makes that happen shuts nobody out', async () => {
  const clock = fakeClock();
  const guard = new HangGuard(clock);
  const refuse = () => {
    clock.stall(3000);
    return Promise.reject(new Error('401'));
  };
  for (let call = 0; call < 3; call += 1) await expect(guard.ask(refuse)).rejects.toThrow('401');
});

it.each([
  ['undici', Object.assign(new Error('x'), { code: 'UND_ERR_CONNECT_TIMEOUT' })],
  ['the system', Object.assign(new Error('x'), { code: 'ETIMEDOUT' })],
  ['a library around them', new Error('x', { cause: new DOMException('x', 'TimeoutError') })],
])('knows the timeouts of %s', async (_name, error) => {
  const guard = new HangGuard(fakeClock());
  await expect(guard.ask(() => Promise.reject(error))).rejects.toBe(error);
  await expect(guard.ask(() => Promise.resolve())).rejects.toThrow(HangingError);
});
