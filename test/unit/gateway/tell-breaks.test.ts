import { pino } from 'pino';
import { expect, it } from 'vitest';
import { EndpointBreaker, tellBreaks } from '../../../src/gateway/balance/endpoint-breaker.ts';
import { fakeClock } from '../../support/fake-clock.ts';

const OUT = 'Model server gets one call at a time, because those before failed';
const BACK = 'Model server answers calls again';

/** A breaker, and what the log says about it. */
function setup() {
  const clock = fakeClock();
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: undefined }, { write: (line) => void lines.push(JSON.parse(line)) });
  const breaker = new EndpointBreaker(clock, tellBreaks(log, clock, { service: 'llms/qwen' }));
  return { clock, breaker, lines, said: () => lines.map(({ msg }) => msg) };
}

it('names the server that is taken out for all, why, and when it is back', () => {
  const { clock, breaker, lines } = setup();
  for (let count = 0; count < 3; count += 1) breaker.fail('connection', clock.monotonic());
  expect(lines).toMatchObject([{ level: 40, msg: OUT, service: 'llms/qwen', why: 'connection' }]);
  breaker.succeed('a');
  expect(lines[1]).toMatchObject({ level: 30, msg: BACK, service: 'llms/qwen' });
});

it('says nothing of a server that fails one tenant, and of one that never was out', () => {
  const { clock, breaker, said } = setup();
  for (let count = 0; count < 50; count += 1) breaker.failFor('a', 'error', clock.monotonic());
  breaker.succeed('a');
  expect(said()).toEqual([]);
  for (const tenant of ['a', 'b']) for (let n = 0; n < 5; n += 1) breaker.failFor(tenant, 'error', clock.monotonic());
  expect(said()).toEqual([OUT]);
});

it('says it once while trials fail, and twice a minute at most of a server that comes and goes', () => {
  const { clock, breaker, said } = setup();
  for (let trial = 0; trial < 40; trial += 1) {
    breaker.fail('hung', breaker.begin('a'));
    clock.stall(30_000);
  }
  expect(said()).toEqual([OUT]);
  breaker.succeed('a');
  for (let second = 0; second < 120; second += 1) {
    breaker.fail('hung', breaker.begin('a'));
    clock.stall(1000);
    breaker.succeed('a');
  }
  expect(said()).toEqual([OUT, BACK, OUT, BACK, OUT, BACK]);
});

it('says of a server that stays out what it kept to itself before', () => {
  const { clock, breaker, said } = setup();
  breaker.fail('hung', breaker.begin('a'));
  breaker.succeed('a');
  breaker.fail('hung', breaker.begin('a'));
  expect(said()).toEqual([OUT, BACK]);
  clock.stall(60_000);
  breaker.fail('hung', breaker.begin('a'));
  expect(said()).toEqual([OUT, BACK, OUT]);
});
