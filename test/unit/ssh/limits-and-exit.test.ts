import { describe, expect, it } from 'vitest';
import { addressGate, limitKey } from '../../../src/ssh/login/address-limits.ts';
import { sessionEnd, signalName } from '../../../src/ssh/session/exit.ts';

const LIMITS = { burst: 3, perSecond: 1, failures: 2, failureWindowSeconds: 10, pending: 2 };

describe('addressGate', () => {
  it('refuses a burst and admits again with time', () => {
    let now = 0;
    const gate = addressGate(LIMITS, () => now);
    const attempt = (): boolean => {
      const admitted = gate.admit('10.0.0.1');
      if (admitted) gate.settle('10.0.0.1', false);
      return admitted;
    };
    expect([attempt(), attempt(), attempt(), attempt()]).toEqual([true, true, true, false]);
    now = 1000;
    expect([attempt(), attempt()]).toEqual([true, false]);
    expect(gate.admit('10.0.0.2')).toBe(true);
  });

  it('refuses an address whose logins fail, for a while', () => {
    let now = 0;
    const gate = addressGate({ ...LIMITS, burst: 100 }, () => now);
    for (let failure = 0; failure < 2; failure += 1) {
      gate.admit('a');
      gate.settle('a', true);
    }
    expect(gate.admit('a')).toBe(false);
    now = 6000;
    expect(gate.admit('a')).toBe(true);
  });

  it('bounds logins under way', () => {
    const gate = addressGate(LIMITS, () => 0);
    expect([gate.admit('a'), gate.admit('a'), gate.admit('a')]).toEqual([true, true, false]);
  });
});

describe('limitKey', () => {
  it.each([
    ['10.1.2.3', '10.1.2.3'],
    ['::ffff:10.1.2.3', '10.1.2.3'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::7', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
  ])('counts %s as %s', (address, key) => {
    expect(limitKey(address)).toBe(key);
  });
});

describe('sessionEnd', () => {
  it('gives the status of the process', () => {
    expect(sessionEnd({ kind: 'exited', code: 137 })).toEqual({ code: 137 });
  });

  it('never calls a lost stream a success', () => {
    expect(sessionEnd({ kind: 'lost', message: 'gone' })).toMatchObject({ code: 255 });
    expect(sessionEnd({ kind: 'failed', message: 'x' })).toMatchObject({ code: 255 });
    expect(sessionEnd({ kind: 'failed', message: 'exec: "/bin/sh": executable file not found' }).code).toBe(127);
  });
});

describe('signalName', () => {
  it.each([
    ['TERM', 'TERM'],
    ['SIGINT', 'INT'],
    ['TERM; rm -rf /', undefined],
    ['', undefined],
  ])('reads %j as %j', (text, name) => {
    expect(signalName(text)).toBe(name);
  });
});
