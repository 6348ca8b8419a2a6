import type { IsolationNeeds } from '../../../../inventory/nodes/isolation.ts';
import type { Namespace } from '../../../../kube/types.ts';
import type { GpuInstanceSpec } from '../../../../resources/instances/gpu-instance.ts';
import { choosesDevices, DEVICE_ENV_REFUSAL } from '../../../../resources/pod/device-env.ts';
import type { Ceilings } from '../../../../resources/tenants/ceilings.ts';
import { isSystemNamespace } from '../../../../resources/tenants/tenancy.ts';
import type { Ending } from '../endings.ts';
import type { Settings } from '../settings.ts';

type IsolationCeilings = Pick<Ceilings, 'runtimeClassNames' | 'userNamespaces'>;

/** What an instance and the operator's ceilings of its tenant ask of a node beside what the pool asks. */
export function isolationNeeds(
  { runtimeClassName, hostUsers }: Pick<GpuInstanceSpec, 'runtimeClassName' | 'hostUsers'>,
  ceilings: IsolationCeilings,
): IsolationNeeds {
  return {
    runtimeClassName,
    mayChoose: runtimeClassName !== undefined && ceilings.runtimeClassNames.includes(runtimeClassName),
    userNamespaces: hostUsers === false || ceilings.userNamespaces === 'Required',
  };
}

/** The ending of an instance in a namespace that nobody rents in. */
export function forbiddenNamespace(namespace: string, own: string): Ending | undefined {
  if (!isSystemNamespace(namespace, own)) return undefined;
  const message = `Namespace ${namespace} belongs to the cluster or to Berth itself, and is no tenant. Delete the instance, and create it in the namespace of a tenant.`;
  return { reason: 'NotATenant', message };
}

/** The ending of an instance whose environment would choose devices: from a time before the API server refused it. */
export function forbiddenEnv({ env }: Pick<Settings, 'env'>): Ending | undefined {
  const names = env.map(({ name }) => name).filter(choosesDevices);
  if (names.length === 0) return undefined;
  const message = `${names.join(', ')} in env of the instance or its template: ${DEVICE_ENV_REFUSAL}.`;
  return { reason: 'ForbiddenEnv', message };
}

/** The label by which a namespace says which pods of it the API server takes (k8s.io/pod-security-admission). */
const ENFORCE_LABEL = 'pod-security.kubernetes.io/enforce';

/** Whether a namespace takes only pods that run as a user other than root. */
export function isRestricted(space: Namespace | undefined): boolean {
  return space?.metadata.labels?.[ENFORCE_LABEL] === 'restricted';
}

/** The ending of an instance that asks for root where nobody may be. */
export function forbiddenRoot(
  { runAsRoot }: Pick<GpuInstanceSpec, 'runAsRoot'>,
  space: Namespace | undefined,
): Ending | undefined {
  if (runAsRoot !== true || !isRestricted(space)) return undefined;
  const message = `The instance asks to be root, and namespace ${space?.metadata.name} enforces Pod Security restricted, which allows no root. Rent without root, with an image that runs as a numbered user.`;
  return { reason: 'ForbiddenRoot', message };
}

/** The ending of an instance that names a RuntimeClass which no pool gives it. `poolClasses`: those that pools name. */
export function forbiddenRuntimeClass(
  { runtimeClassName: wanted, mayChoose }: IsolationNeeds,
  poolClasses: Iterable<string | undefined>,
): Ending | undefined {
  if (wanted === undefined || mayChoose || [...poolClasses].includes(wanted)) return undefined;
  const message = `spec.runtimeClassName is ${wanted}, which the operator does not allow this tenant. Remove it, or ask the operator to add it to runtimeClassNames of the TenantPolicy.`;
  return { reason: 'ForbiddenRuntimeClass', message };
}
