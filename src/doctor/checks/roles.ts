import type { Deployment } from '../../kube/installation-types.ts';
import { readRecord } from '../../runtime/lease-record.ts';
import type { Lease } from '../../kube/types.ts';
import { controllersIn, type Facts, helmUpgrade, rolesIn, variableOf } from '../facts.ts';
import { check, named, type Problem } from '../finding.ts';

/** Without them nothing can be rented. The dashboard may be switched off. */
const NEEDED = ['controller', 'api', 'ssh'];
/** The lease may be older than the answer that it came in: other kinds were read after it. */
const SLACK_MS = 60_000;

/** Whether the role api serves webhooks, as with webhooks.enabled of the chart. Then the notifier must be there. */
function servesWebhooks(api: Deployment | undefined): boolean {
  return variableOf(api, 'BERTH_WEBHOOKS') === 'true';
}

function problemOf(
  role: string,
  deployment: Deployment | undefined,
  { facts, isNeeded }: { facts: Facts; isNeeded: boolean },
): Problem | undefined {
  const { namespace } = facts;
  if (deployment === undefined) {
    return {
      severity: 'error',
      reason: 'RoleMissing',
      objects: [],
      message: `There is no Deployment of the role ${role} in namespace ${namespace}.`,
      why: 'The work of the role is not done.',
      remedy:
        role === 'notifier'
          ? helmUpgrade(facts, 'webhooks.enabled=true')
          : `helm list --all-namespaces --filter berth   # then berth doctor -n NAMESPACE, or install it`,
    };
  }
  const wanted = deployment.spec?.replicas ?? 1;
  const ready = deployment.status?.readyReplicas ?? 0;
  if (wanted > 0 && ready >= wanted) return undefined;
  const { name } = deployment.metadata;
  const object = `${namespace}/deployment/${name}`;
  if (wanted === 0 && !isNeeded) return undefined;
  return {
    severity: ready === 0 ? 'error' : 'warning',
    reason: wanted === 0 ? 'RoleSwitchedOff' : 'RoleNotReady',
    objects: [object],
    message: `Deployment ${name} has ${ready} of ${wanted} replicas ready.`,
    why:
      ready === 0
        ? 'The work of the role is not done.'
        : 'When one more replica goes, the work of the role is not done.',
    remedy:
      wanted === 0
        ? `kubectl scale deployment ${name} -n ${namespace} --replicas=2`
        : `kubectl describe pods -n ${namespace} -l app.kubernetes.io/part-of=berth,app.kubernetes.io/component=${role}`,
  };
}

/** A role of which one replica works at a time. */
interface Led {
  role: string;
  /** What stops while nobody leads. */
  why: string;
}

const CONTROLLER: Led = {
  role: 'controller',
  why: 'Running instances keep running. Nothing starts, stops or is billed anew until a controller leads.',
};
const NOTIFIER: Led = {
  role: 'notifier',
  why: 'Webhooks get no events. Events are kept for them for three days.',
};

function leader({ role, why }: Led, leases: readonly Lease[], { namespace, prefix, now }: Facts): Problem[] {
  const lease = leases.find(({ metadata }) => metadata.namespace === namespace);
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
        ? `The ${role} ${record.holder} leads, and has not renewed its Lease${since}.`
        : `No ${role} leads in namespace ${namespace}.`,
      why,
      remedy: `kubectl logs -n ${namespace} deployment/${prefix}-${role} --all-pods --tail=50`,
    },
  ];
}

/** The chart refuses a second release where Helm asks the cluster. What renders without it, as Argo CD does, cannot. */
function second(deployments: readonly Deployment[]): Problem[] {
  const controllers = controllersIn(deployments);
  if (controllers.length < 2) return [];
  const names = controllers.map(({ metadata: { namespace, name } }) => `${namespace}/deployment/${name}`).toSorted();
  return [
    {
      severity: 'error',
      reason: 'SecondRelease',
      objects: names,
      message: `A cluster takes one release of Berth, and has a controller in each of ${named(names)}.`,
      why: 'Each would write claims, statuses and bills, and the policies of one refuse the writes of the other.',
      remedy: 'helm list --all-namespaces --filter berth   # remove the one that tenants do not use',
    },
  ];
}

export const roles = check({
  name: 'roles',
  title: 'Every role of Berth is ready, once, and those that need a leader have one',
  needs: ['deployments', 'leases', 'notifierLeases'],
  find({ deployments, leases, notifierLeases }, facts) {
    const own = rolesIn(deployments, facts.namespace);
    const needed = new Set(servesWebhooks(own.get('api')) ? [...NEEDED, 'notifier'] : NEEDED);
    const found = [...new Set([...needed, ...own.keys()])].flatMap(
      (role) => problemOf(role, own.get(role), { facts, isNeeded: needed.has(role) }) ?? [],
    );
    // Without its Deployment nobody can lead, and that is said already.
    const isNotified = needed.has('notifier') && own.has('notifier');
    return [
      ...second(deployments),
      ...found,
      ...leader(CONTROLLER, leases, facts),
      ...(isNotified ? leader(NOTIFIER, notifierLeases, facts) : []),
    ];
  },
});
