import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseUserName } from '../../../src/ssh/login/user-name.ts';

describe('parseUserName', () => {
  it('reads an id, and an id with its namespace', () => {
    expect(parseUserName('i-abc')).toEqual({ instance: 'i-abc', namespace: undefined });
    expect(parseUserName('i-abc.team-a')).toEqual({ instance: 'i-abc', namespace: 'team-a' });
  });

  it('reads a name with dots, which Kubernetes takes, up to the last one', () => {
    expect(parseUserName('a.b.team-a')).toEqual({ instance: 'a.b', namespace: 'team-a' });
  });

  it.each(['', '.', 'I-ABC', 'a.', '.a', 'a..b', 'a.-b.c', 'a/b', '../etc', 'root\n', '-a', 'a'.repeat(129)])(
    'refuses %j',
    (name) => {
      expect(parseUserName(name)).toBeUndefined();
    },
  );

  it('never throws and never lets a separator through', () => {
    fc.assert(
      fc.property(fc.string(), (name) => {
        const user = parseUserName(name);
        if (user === undefined) return true;
        return !/[/\s]|\.\.|^\.|\.$/.test(user.instance) && !/[./\s]/.test(user.namespace ?? '');
      }),
    );
  });
});
