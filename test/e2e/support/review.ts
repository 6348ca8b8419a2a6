import { type Access, type Grant, grantsOf, type Rule, unusedGrants, usesOf } from '../../support/audit.ts';
import { NAMESPACE, type Release, ROLES } from './release.ts';

interface Role {
  metadata: { name: string; namespace?: string };
  rules: Rule[];
}

/**
 * Rights that a role needs although this test does not see their use, and why. A right that is neither here nor in the
 * audit log is one too many.
 */
const UNSEEN: Readonly<Record<string, string>> = {
  'update gpuinstances/finalizers': 'asked for by an admission plug-in that is off by default, without a request',
  'create pods/exec': 'asked for beside get by a second look-up of the API server, which the audit log does not tell',
  'create pods/portforward': 'the same',
  'create secrets': 'makes the host key or a session key, in the replica that needs it first',
  'patch events': 'counts up an Event that happens again within minutes',
  'get pods': 'reads a pod whose creation was answered AlreadyExists, after a crash between two writes',
  'controller: get gpuinstances': 'reads what the cache may not show yet, before an instance is deleted for ever',
  'get persistentvolumes': 'reads which nodes a disk is tied to, at the second start of an instance',
  'delete tenantlimits': 'removes the ceilings a minute after a namespace has ceased to be a tenant',
  'delete resourcequotas': 'the same',
  'controller: get leases': 'reads the Lease of a model server again before its workload goes to zero',
  'controller: patch leases': 'forgets a replica that served instances and went without a word',
  'controller: delete leases': 'removes the Lease of a model server whose Service is gone',
  'controller: delete instancelogs': 'removes kept logs of a tenant that has too many, or whose histories are over',
  'controller: patch instancelogs':
    'keeps the end of a log again when its program has ended, if there was time to read it before',
  'api: create tokenrecords':
    'asked for beside patch, where an apply makes the object; the audit log has the patch alone',
  'api: get sshkeys': 'reads a key that another replica made a moment ago',
};

/** The watch caches list only where the API server cannot stream lists (before Kubernetes 1.34, or switched off). */
const isFallback = ({ verb }: Grant): boolean => verb === 'list';

const nameOf = ({ verb, resource }: Access | Grant): string => `${verb} ${resource}`;

const isUnseen = (grant: Grant): boolean => nameOf(grant) in UNSEEN || `${grant.role}: ${nameOf(grant)}` in UNSEEN;

export interface UseReport {
  /** Requests of a role that were refused. */
  refused: string[];
  /** Rights of a role that it did not use. */
  unused: string[];
}

/** Compares the rights that the chart grants with the requests in the audit log. */
export async function reportUse(release: Release, log: string): Promise<UseReport> {
  const roles = [...(await release.objects<Role>('ClusterRole')), ...(await release.objects<Role>('Role'))];
  const refused: string[] = [];
  const unused: string[] = [];
  for (const role of ROLES) {
    const account = `berth-${role}`;
    const uses = usesOf(log, `system:serviceaccount:${NAMESPACE}:${account}`);
    const grants = roles
      .filter(({ metadata }) => metadata.name === account)
      .flatMap(({ metadata, rules }) => grantsOf(role, rules, metadata.namespace));
    refused.push(...new Set(uses.refused.map((access) => `${role}: ${nameOf(access)}`)));
    const idle = unusedGrants(grants, uses.used).filter((grant) => !isFallback(grant) && !isUnseen(grant));
    unused.push(...new Set(idle.map((grant) => `${role}: ${nameOf(grant)}`)));
  }
  return { refused, unused };
}
