import type { GpuResource } from '../../inventory/nodes/gpu-labels.ts';
import { nodeFacts } from '../../inventory/nodes/node-view.ts';
import { orderPools } from '../../inventory/pools.ts';
import type { Monitor } from '../../kube/installation-types.ts';
import { selects } from '../../kube/selector.ts';
import type { KubeObject } from '../../kube/types.ts';
import { hasTenantLabel } from '../../resources/tenants/tenancy.ts';
import { COMPONENT, helmUpgrade, rolesIn } from '../facts.ts';
import { check, named, type Problem } from '../finding.ts';

/** Whether a monitor takes objects with these labels in this namespace. */
function scrapes({ metadata, spec }: Monitor, namespace: string, labels: Readonly<Record<string, string>>): boolean {
  const { any = false, matchNames } = spec?.namespaceSelector ?? {};
  const isThere = any || (matchNames ?? [metadata.namespace ?? '']).includes(namespace);
  return isThere && selects(spec?.selector, labels);
}

export const monitors = check({
  name: 'monitors',
  title: 'The Prometheus operator scrapes Berth, where it is installed',
  needs: ['serviceMonitors', 'podMonitors', 'ownServices', 'deployments'],
  find({ serviceMonitors, podMonitors, ownServices, deployments }, facts): Problem[] {
    const { absent, namespace } = facts;
    if (absent.has('serviceMonitors') && absent.has('podMonitors')) return [];
    const controller = rolesIn(deployments, namespace).get('controller');
    if (controller === undefined) return [];
    const services = ownServices.filter(
      ({ metadata }) => metadata.namespace === namespace && metadata.labels?.[COMPONENT] === 'metrics',
    );
    const isSeen =
      services.some(({ metadata }) => serviceMonitors.some((one) => scrapes(one, namespace, metadata.labels ?? {}))) ||
      podMonitors.some((one) => scrapes(one, namespace, controller.spec?.template.metadata?.labels ?? {}));
    if (isSeen) return [];
    return [
      {
        severity: 'warning',
        reason: 'NoMonitor',
        objects: [],
        message: 'The Prometheus operator is installed, and no ServiceMonitor or PodMonitor selects Berth.',
        why: 'No alert of Berth can fire, and nobody sees how long tenants wait.',
        remedy: helmUpgrade(facts, 'metrics.serviceMonitor.enabled=true', 'metrics.prometheusRule.enabled=true'),
      },
    ];
  },
});

function isTenant(namespaces: readonly KubeObject[], name: string): boolean {
  return namespaces.some((one) => one.metadata.name === name && hasTenantLabel(one));
}

function isNvidia({ resourceName }: GpuResource): boolean {
  return resourceName.startsWith('nvidia.com/');
}

export const exporters = check({
  name: 'exporters',
  title: 'DCGM exporter runs on every node with GPUs of NVIDIA',
  needs: ['nodes', 'pools', 'exporters', 'namespaces'],
  find({ nodes, pools, exporters: pods, namespaces }): Problem[] {
    // A tenant may give its own pod that label. The api role does not ask such a pod.
    const own = pods.filter(({ metadata }) => !isTenant(namespaces, metadata.namespace ?? ''));
    const have = new Set(own.map(({ spec }) => spec?.nodeName));
    const ordered = orderPools(pools);
    const without = nodes
      .map((node) => nodeFacts(node, ordered))
      .filter(({ name, simulated, resources }) => !simulated && resources.some(isNvidia) && !have.has(name))
      .map(({ name }) => name)
      .toSorted();
    if (without.length === 0) return [];
    return [
      {
        severity: 'warning',
        reason: 'NoExporter',
        objects: without.map((name) => `node/${name}`),
        message: `No pod with the label app=nvidia-dcgm-exporter runs on node ${named(without)}.`,
        why: 'Xid errors of these GPUs, and the load of instances that run no exporter of their own, are not known.',
        remedy: 'kubectl get pods --all-namespaces -o wide -l app=nvidia-dcgm-exporter',
      },
    ];
  },
});
