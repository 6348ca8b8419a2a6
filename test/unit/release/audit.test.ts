import { describe, expect, it } from 'vitest';
import { grantsOf, unusedGrants, usesOf } from '../../support/audit.ts';

const USER = 'system:serviceaccount:berth-system:berth-ssh';

function line(verb: string, objectRef: object, decision = 'allow', username = USER): string {
  return JSON.stringify({
    user: { username },
    verb,
    objectRef,
    annotations: { 'authorization.k8s.io/decision': decision },
  });
}

const LOG = [
  line('get', { resource: 'secrets', namespace: 'berth-system', name: 'berth-ssh-host-key' }),
  line('get', { resource: 'pods', subresource: 'exec', namespace: 'alice', name: 'one-1' }),
  line('list', { resource: 'nodes' }, 'forbid'),
  line('delete', { resource: 'pods', namespace: 'alice', name: 'one-1' }, 'allow', 'admin'),
  '{"user":{"usern',
].join('\n');

describe('usesOf', () => {
  it('separates what the user was allowed from what it was refused', () => {
    const { used, refused } = usesOf(LOG, USER);
    expect(used.map(({ verb, resource }) => `${verb} ${resource}`)).toEqual(['get secrets', 'get pods/exec']);
    expect(refused.map(({ verb, resource }) => `${verb} ${resource}`)).toEqual(['list nodes']);
  });
});

describe('unusedGrants', () => {
  const rules = [
    { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'delete'], resourceNames: ['berth-ssh-host-key'] },
    { apiGroups: [''], resources: ['pods', 'pods/exec'], verbs: ['get'] },
  ];

  it('names every right without a request, one by one', () => {
    const unused = unusedGrants(grantsOf('ssh', rules), usesOf(LOG, USER).used);
    expect(unused.map(({ verb, resource }) => `${verb} ${resource}`)).toEqual(['delete secrets', 'get pods']);
  });

  it('counts a right in one namespace only where it was used there', () => {
    const grants = grantsOf('ssh', rules.slice(0, 1), 'elsewhere');
    expect(unusedGrants(grants, usesOf(LOG, USER).used)).toHaveLength(2);
  });
});
