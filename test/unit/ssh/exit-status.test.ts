import { describe, expect, it } from 'vitest';
import { exitStatusOf } from '../../../src/ssh/session/exit-status.ts';
import { signalName } from '../../../src/ssh/session/signal-script.ts';

describe('exitStatusOf', () => {
  it('gives the status of the process', () => {
    expect(exitStatusOf({ kind: 'exited', code: 137 })).toEqual({ code: 137 });
  });

  it('never calls a lost stream a success', () => {
    expect(exitStatusOf({ kind: 'lost', message: 'gone' })).toMatchObject({ code: 255 });
    expect(exitStatusOf({ kind: 'failed', message: 'x' })).toMatchObject({ code: 255 });
    expect(exitStatusOf({ kind: 'failed', message: 'exec: "/bin/sh": executable file not found' }).code).toBe(127);
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
