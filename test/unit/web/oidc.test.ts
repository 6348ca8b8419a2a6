import { describe, expect, it } from 'vitest';
import { ConfigError, readConfig } from '../../../src/config/config.ts';
import { namesGroups, renewedUser, userOfClaims } from '../../../src/web/oidc-user.ts';

const SETTINGS = { username: 'email', usernamePrefix: 'oidc:', groups: 'groups', groupsPrefix: 'idp:' };
const ANN = { sub: '1', email: 'ann@example.com', email_verified: true, groups: ['a', 'b'] };

describe('the user of an ID token', () => {
  it('has the prefixes of the settings, and is somebody whom the cluster knows', () => {
    expect(userOfClaims(ANN, SETTINGS)).toEqual({
      username: 'oidc:ann@example.com',
      groups: ['idp:a', 'idp:b', 'system:authenticated'],
    });
    expect(userOfClaims({ ...ANN, groups: 'one' }, SETTINGS).groups).toEqual(['idp:one', 'system:authenticated']);
    const { groups: _groups, ...none } = ANN;
    expect(userOfClaims(none, SETTINGS).groups).toEqual(['system:authenticated']);
  });

  it.each([
    ['no name', { ...ANN, email: undefined }, SETTINGS],
    ['a name that is no text', { ...ANN, email: ['x'] }, SETTINGS],
    ['an address that is not verified', { ...ANN, email_verified: false }, SETTINGS],
    ['groups that are no names', { ...ANN, groups: [{ name: 'a' }] }, SETTINGS],
    ['the group of all rights', { ...ANN, groups: ['system:masters'] }, { ...SETTINGS, groupsPrefix: '' }],
    ['the name of an account', { ...ANN, email: 'system:serviceaccount:a:b' }, { ...SETTINGS, usernamePrefix: '' }],
    ['a prefix that makes it one', { ...ANN, groups: ['masters'] }, { ...SETTINGS, groupsPrefix: 'system:' }],
    ['too many groups', { ...ANN, groups: Array.from({ length: 300 }, (_, at) => String(at)) }, SETTINGS],
  ])('is nobody with %s', (_what, claims, settings) => {
    expect(() => userOfClaims(claims, settings)).toThrow(/claim|verified/i);
  });

  it('has the groups that the provider names now', () => {
    const known = { user: userOfClaims(ANN, SETTINGS), namesGroups: false };
    expect(renewedUser(known, { groups: [] }, SETTINGS)?.groups).toEqual(['system:authenticated']);
    expect(renewedUser(known, { groups: ['c'] }, SETTINGS)?.groups).toEqual(['idp:c', 'system:authenticated']);
    expect(() => renewedUser(known, { groups: ['system:masters'] }, { ...SETTINGS, groupsPrefix: '' })).toThrow(
      /reserved/,
    );
  });

  it.each<[string, object, groups: string[]]>([
    ['names them in the ID token alone', { sub: '1' }, ['idp:a', 'idp:b', 'system:authenticated']],
    ['named them when it was asked at the sign-in', ANN, ['system:authenticated']],
    ['named none when it was asked at the sign-in', { ...ANN, groups: [] }, ['system:authenticated']],
  ])('has the groups that a missing claim means at a provider that %s', (_what, atSignIn, groups) => {
    const known = { user: userOfClaims(ANN, SETTINGS), namesGroups: namesGroups({ ...atSignIn }, SETTINGS) };
    expect(renewedUser(known, { sub: '1' }, SETTINGS)?.groups).toEqual(groups);
  });

  it.each([
    ['has another address', { ...ANN, email: 'root@example.com' }],
    ['has an address that is not verified any more', { ...ANN, email_verified: false }],
  ])('is over when the person %s', (_what, claims) => {
    const known = { user: userOfClaims(ANN, SETTINGS), namesGroups: true };
    expect(renewedUser(known, claims, SETTINGS)).toBeUndefined();
  });
});

describe('the settings', () => {
  const BASE = {
    BERTH_OIDC_ISSUER: 'https://id.example.com/',
    BERTH_OIDC_CLIENT_ID: 'berth',
    BERTH_PUBLIC_URL: 'https://gpu.example.com',
  };

  it('prefix names as the API server does', () => {
    expect(readConfig({}).oidc).toBeUndefined();
    expect(readConfig(BASE).oidc).toMatchObject({
      name: 'id.example.com',
      scopes: 'openid email profile',
      claims: { username: 'sub', usernamePrefix: 'https://id.example.com#', groups: undefined, groupsPrefix: '' },
    });
    const prefix = (env: Record<string, string>) => readConfig({ ...BASE, ...env }).oidc?.claims.usernamePrefix;
    expect(prefix({ BERTH_OIDC_USERNAME_CLAIM: 'email' })).toBe('');
    expect(prefix({ BERTH_OIDC_USERNAME_PREFIX: '-' })).toBe('');
    expect(prefix({ BERTH_OIDC_USERNAME_PREFIX: 'oidc:' })).toBe('oidc:');
  });

  it.each([
    [{ ...BASE, BERTH_OIDC_ISSUER: 'http://id.example.com' }, 'BERTH_OIDC_ISSUER'],
    [{ ...BASE, BERTH_OIDC_CLIENT_ID: '' }, 'BERTH_OIDC_CLIENT_ID'],
    [{ ...BASE, BERTH_PUBLIC_URL: '' }, 'BERTH_PUBLIC_URL'],
    [{ ...BASE, BERTH_PUBLIC_URL: 'http://gpu.example.com' }, 'BERTH_PUBLIC_URL'],
  ])('name what is wrong: %j', (env, name) => {
    expect(() => readConfig(env)).toThrow(ConfigError);
    expect(() => readConfig(env)).toThrow(name);
  });
});
