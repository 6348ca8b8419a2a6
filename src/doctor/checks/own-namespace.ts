import type { KubeObject } from '../../kube/types.ts';
import { hasTenantLabel } from '../../resources/tenants/tenancy.ts';
import { TENANT_LABEL } from '../../resources/tenants/tenant-policy.ts';
import { check, firstOf, named, type Problem } from '../finding.ts';

/** What tenants have does not belong beside the Secrets of the roles. */
export const ownNamespace = check({
  name: 'own-namespace',
  title: "Nobody rents in Berth's own namespace",
  needs: ['apiKeys', 'instances', 'namespaces'],
  find({ apiKeys, instances, namespaces }, { namespace }): Problem[] {
    const isHere = ({ metadata }: KubeObject): boolean => metadata.namespace === namespace;
    const kinds = [
      { kind: 'apikey', names: apiKeys.filter(isHere).map(({ metadata }) => metadata.name) },
      { kind: 'gpuinstance', names: instances.filter(isHere).map(({ metadata }) => metadata.name) },
    ].filter(({ names }) => names.length > 0);
    const found = kinds.map(({ kind, names }): Problem => {
      const what = kind === 'apikey' ? 'API keys' : 'instances';
      return {
        severity: 'error',
        reason: kind === 'apikey' ? 'KeyInOwnNamespace' : 'InstanceInOwnNamespace',
        objects: names.map((name) => `${namespace}/${kind}/${name}`),
        message: `In ${namespace}, the namespace of Berth itself, there are ${what}: ${named(names.toSorted())}.`,
        why: 'A tenant in this namespace is next to the Secrets of the roles and within their network policies.',
        remedy: `kubectl delete ${kind} -n ${namespace} ${firstOf(names.toSorted()).words}   # make them in the namespace of a tenant`,
      };
    });
    const isTenant = namespaces.some((one) => one.metadata.name === namespace && hasTenantLabel(one));
    if (!isTenant) return found;
    return [
      ...found,
      {
        severity: 'error',
        reason: 'OwnNamespaceIsTenant',
        objects: [`namespace/${namespace}`],
        message: `${namespace}, the namespace of Berth itself, has the label ${TENANT_LABEL}=true.`,
        why: 'A tenant there is next to the Secrets of the roles and within their network policies.',
        remedy: `kubectl label namespace ${namespace} ${TENANT_LABEL}-`,
      },
    ];
  },
});
