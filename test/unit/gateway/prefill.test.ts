import { describe, expect, it } from 'vitest';
import { Prefill, type Prompt } from '../../../src/gateway/balance/prefill.ts';

function prompt(promptTokens: number, stream = true): Prompt {
  return { promptTokens, inspection: { stream } };
}

/** An engine that has read a prompt of 10,000 tokens in 100 ms. */
function known(): Prefill {
  const prefill = new Prefill();
  const first = prompt(10_000);
  prefill.sent(first, 0);
  prefill.answered(first, 100);
  return prefill;
}

describe('the prompts that an engine has to read', () => {
  it('are one long one until the first answer has begun', () => {
    const prefill = new Prefill();
    const first = prompt(10_000);
    expect(prefill.roomIn(0)).toBe(0);
    prefill.sent(first, 0);
    expect(prefill.roomIn(90)).toBe(Infinity);
    prefill.answered(first, 100);
    expect(prefill.roomIn(100)).toBe(0);
  });

  it('are as many short ones as it reads in a step', () => {
    const prefill = new Prefill();
    for (let sent = 0; sent < 10; sent += 1) prefill.sent(prompt(100), 0);
    expect(prefill.roomIn(0)).toBe(0);
    prefill.sent(prompt(100), 0);
    expect(prefill.roomIn(0)).toBe(Infinity);
  });

  it('get one more shortly before the engine has read what it has', () => {
    const prefill = known();
    const [second, third] = [prompt(10_000), prompt(5000)] as const;
    prefill.sent(second, 1000);
    expect(prefill.roomIn(1000)).toBe(80);
    expect(prefill.roomIn(1050)).toBe(30);
    expect(prefill.roomIn(1080)).toBe(0);
    prefill.sent(third, 1080);
    // However long the answer to the first takes, no more than one waits behind it.
    expect(prefill.roomIn(2000)).toBe(Infinity);
    prefill.answered(second, 1100);
    expect(prefill.roomIn(1100)).toBe(30);
  });

  it('get the next one sooner where it came late, or not before all was read, and then later again', () => {
    const prefill = known();
    const [second, third, fourth] = [prompt(10_000), prompt(10_000), prompt(10_000)] as const;
    prefill.sent(second, 110, true);
    expect(prefill.roomIn(110)).toBe(70);
    prefill.sent(third, 200);
    prefill.answered(second, 210);
    expect(prefill.roomIn(210)).toBe(60);
    prefill.sent(fourth, 270);
    prefill.answered(third, 310);
    expect(prefill.roomIn(310)).toBe(61);
  });

  it('are read when a later one is, and forgotten when their requests end', () => {
    const prefill = known();
    const [second, third, fourth] = [prompt(10_000), prompt(10_000), prompt(10_000)] as const;
    for (const one of [second, third, fourth]) prefill.sent(one, 1000);
    prefill.answered(third, 1200);
    expect(prefill.roomIn(1200)).toBe(80);
    prefill.gone(fourth);
    prefill.gone(second);
    expect(prefill.roomIn(1200)).toBe(0);
  });

  it('of whole answers take as long as others did, and no time where none is known', () => {
    const prefill = known();
    prefill.sent(prompt(10_000, false), 1000);
    prefill.sent(prompt(10_000, false), 1000);
    expect(prefill.roomIn(1000)).toBe(Infinity);
    expect(prefill.roomIn(1100)).toBe(80);
    expect(prefill.roomIn(1200)).toBe(0);
    const unknown = new Prefill();
    unknown.sent(prompt(10_000, false), 0);
    unknown.sent(prompt(10_000, false), 0);
    expect(unknown.roomIn(0)).toBe(0);
  });
});
