import type { Service } from '../../kube/types.ts';
import { isServiceName } from '../../wire/service-name.ts';
import { COMPONENT, helmUpgrade, rolesIn, variableOf } from '../facts.ts';
import { check, named, type Problem, quoted } from '../finding.ts';

const WHY = 'People outside of the cluster cannot get in.';

/** Whether a load balancer was asked for and gave no address, as where none is installed. */
function waitsForAddress({ spec, status }: Service): boolean {
  return spec?.type === 'LoadBalancer' && (status?.loadBalancer?.ingress ?? []).length === 0;
}

export const waysIn = check({
  name: 'ways-in',
  title: 'People outside of the cluster can get in',
  needs: ['deployments', 'ownServices'],
  find({ deployments, ownServices }, facts): Problem[] {
    const { namespace } = facts;
    const found: Problem[] = [];
    const host = variableOf(rolesIn(deployments, namespace).get('controller'), 'BERTH_SSH_PUBLIC_HOST');
    if (host !== undefined && isServiceName(host)) {
      found.push({
        severity: 'warning',
        reason: 'InsideOnly',
        objects: [],
        message: `Instances name ${host} for SSH, a host that only pods find.`,
        why: WHY,
        remedy: helmUpgrade(facts, 'ssh.service.type=LoadBalancer', 'ssh.publicHost=HOST'),
      });
    }
    const waiting = ownServices
      .filter(({ metadata }) => metadata.namespace === namespace && metadata.labels?.[COMPONENT] !== undefined)
      .filter(waitsForAddress)
      .map(({ metadata }) => metadata.name);
    const [first] = waiting;
    if (first !== undefined) {
      found.push({
        severity: 'warning',
        reason: 'NoAddress',
        objects: waiting.map((name) => `${namespace}/service/${name}`),
        message: `No load balancer gives Service ${named(waiting)} an address.`,
        why: WHY,
        remedy: `kubectl describe service ${quoted(first)} -n ${quoted(namespace)}   # or set its type to NodePort`,
      });
    }
    return found;
  },
});
