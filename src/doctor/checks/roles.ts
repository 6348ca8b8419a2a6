import type { Deployment } from '../../kube/installation-types.ts';
import { readRecord } from '../../runtime/lease/lease-record.ts';
import type { Lease } from '../../kube/types.ts';
import { rolesIn } from '../facts.ts';
import { check, type Problem } from '../finding.ts';

/** Without them nothing can be rented. The dashboard may be switched off. */
const NEEDED = ['controller', 'api', 'ssh'];
/** The lease may be older than the answer that it came in: other kinds were read after it. */
const SLACK_MS = 60_000;

function problemOf(role: string, deployment: Deployment | undefined, namespace: string): Problem | undefined {
  if (deployment === undefined) {
    if (!NEEDED.includes(role)) return undefined;
    return {
      severity: 'error',
      reason: 'RoleMissing',
      objects: [],
      message: `There is no Deployment of the role ${role} in namespace ${namespace}.`,
      why: 'What the role does is not done.',
      remedy: `helm list --all-namespaces --filter berth   # then berth doctor -n NAMESPACE, or install it`,
    };
  }
  const wanted = deployment.spec?.replicas ?? 1;
  const ready = deployment.status?.readyReplicas ?? 0;
  if (wanted > 0 && ready >= wanted) return undefined;
  const { name } = deployment.metadata;
  const object = `${namespace}/deployment/${name}`;
  if (wanted === 0 && !NEEDED.includes(role)) return undefined;
  return {
    severity: ready === 0 ? 'error' : 'warning',
    reason: wanted === 0 ? 'RoleSwitchedOff' : 'RoleNotReady',
    objects: [object],
    message: `Deployment ${name} has ${ready} of ${wanted} replicas ready.`,
    why:
      ready === 0 ? 'What the role does is not done.' : 'When one more replica goes, what the role does is not done.',
    remedy:
      wanted === 0
        ? `kubectl scale deployment ${name} -n ${namespace} --replicas=2`
        : `kubectl describe pods -n ${namespace} -l app.kubernetes.io/part-of=berth,app.kubernetes.io/component=${role}`,
  };
}

function leader(
  lease: Lease | undefined,
  { namespace, prefix, now }: { namespace: string; prefix: string; now: number },
): Problem[] {
  const record = lease === undefined ? undefined : readRecord(lease);
  const renewed = Date.parse(record?.renewTime ?? '');
  const isHeld = record !== undefined && record.holder !== '';
  if (isHeld && renewed + record.durationSeconds * 1000 + SLACK_MS > now) return [];
  const since = isHeld ? ` since ${record.renewTime}` : '';
  return [
    {
      severity: 'error',
      reason: isHeld ? 'LeaderSilent' : 'NoLeader',
      objects: isHeld ? [`${namespace}/lease/${lease?.metadata.name}`] : [],
      message: isHeld
        ? `The controller ${record.holder} leads, and has not renewed its Lease${since}.`
        : `No controller leads in namespace ${namespace}.`,
      why: 'Instances that run go on. Nothing starts, stops or is billed anew until a controller leads.',
      remedy: `kubectl logs -n ${namespace} deployment/${prefix}-controller --all-pods --tail=50`,
    },
  ];
}

export const roles = check({
  name: 'roles',
  title: 'Every role of Berth is ready, and a controller leads',
  needs: ['deployments', 'leases'],
  find({ deployments, leases }, facts) {
    const { namespace } = facts;
    const own = rolesIn(deployments, namespace);
    const names = new Set([...NEEDED, ...own.keys()]);
    const found = [...names].flatMap((role) => problemOf(role, own.get(role), namespace) ?? []);
    const lease = leases.find(({ metadata }) => metadata.namespace === namespace);
    return [...found, ...leader(lease, facts)];
  },
});
