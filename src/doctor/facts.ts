import type { Deployment } from '../kube/installation-types.ts';
import { hasTenantLabel } from '../resources/tenants/tenancy.ts';
import type { Objects, SourceName } from './sources.ts';

/** Labels of the chart, which its selectors need. */
export const COMPONENT = 'app.kubernetes.io/component';

/** What checks know beside the objects. */
export interface Facts {
  /** Namespace of Berth. */
  namespace: string;
  /** What the names of the release begin with: berth, in berth-controller. */
  prefix: string;
  /** Name of the release for Helm. */
  release: string;
  /** As in v1.36.2. */
  gitVersion: string;
  /** The API server's clock when the reading ended, milliseconds since the epoch. */
  now: number;
  /** How far this machine's clock is before the API server's, milliseconds; undefined when the server does not say. */
  ahead: number | undefined;
  /** Kinds that the API server does not know. */
  absent: ReadonlySet<SourceName>;
}

/** Berth's own Deployments there, by role. */
export function rolesIn(deployments: readonly Deployment[], namespace: string): Map<string, Deployment> {
  const own = deployments.filter(({ metadata }) => metadata.namespace === namespace);
  return new Map(own.map((one) => [one.metadata.labels?.[COMPONENT] ?? '', one] as const));
}

/** The value of a variable of a role's program; undefined when the chart sets none. */
export function variableOf(deployment: Deployment | undefined, name: string): string | undefined {
  const variables = deployment?.spec?.template.spec?.containers.flatMap(({ env = [] }) => env) ?? [];
  return variables.find((one) => one.name === name)?.value;
}

export function controllersIn(deployments: readonly Deployment[]): Deployment[] {
  return deployments.filter(({ metadata }) => metadata.labels?.[COMPONENT] === 'controller');
}

/** Where the first Deployment of a controller is, and what its release is called. */
export function findRelease(
  deployments: readonly Deployment[],
  namespace: string | undefined,
): Pick<Facts, 'namespace' | 'prefix' | 'release'> {
  const found = controllersIn(deployments).find(
    ({ metadata }) => namespace === undefined || metadata.namespace === namespace,
  );
  return {
    namespace: namespace ?? found?.metadata.namespace ?? 'berth-system',
    prefix: found?.metadata.name.replace(/-controller$/, '') ?? 'berth',
    release: found?.spec?.selector.matchLabels?.['app.kubernetes.io/instance'] ?? 'berth',
  };
}

/** Names of the namespaces of tenants. Where no label is asked for, a namespace with instances is a tenant's. */
export function tenantsOf(
  { namespaces, instances, policies }: Pick<Objects, 'namespaces' | 'instances' | 'policies'>,
  { prefix }: Pick<Facts, 'prefix'>,
): string[] {
  const isAsked = policies.some(({ metadata }) => metadata.name === `${prefix}-tenants`);
  const used = new Set(isAsked ? [] : instances.map(({ metadata }) => metadata.namespace));
  return namespaces
    .filter((one) => hasTenantLabel(one) || used.has(one.metadata.name))
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata.name)
    .toSorted();
}

/** The command that gives the release these values, and keeps those that it has. */
export function helmUpgrade({ release, namespace }: Facts, ...values: string[]): string {
  const sets = values.map((value) => ` --set ${value}`).join('');
  return `helm upgrade ${release} charts/berth --namespace ${namespace} --reset-then-reuse-values${sets}`;
}
