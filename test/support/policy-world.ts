import { findCondition } from '../../src/kube/conditions.ts';
import type { GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { type TenantPolicy, tenantPolicySpecSchema } from '../../src/resources/tenants/tenant-policy.ts';
import { controllerWorld, held } from './controller-world.ts';
import { gpuInstance } from './inventory-world.ts';

/** The policy of every tenant here, which error messages name. */
export function goldPolicy(spec: object, version = '2'): TenantPolicy {
  return { metadata: { name: 'gold', resourceVersion: version }, spec: tenantPolicySpecSchema.parse(spec) };
}

/** A world in which the tenant has this policy, with what a test asks about its instances. */
export function policyWorld(spec: object, ...more: Parameters<typeof controllerWorld>) {
  const world = controllerWorld(...more);
  world.policies.upsert(goldPolicy(spec));
  const instance = (name: string): GpuInstance => {
    const found = world.instances.store.get(`default/${name}`);
    if (found === undefined) throw new Error(`there is no instance ${name}`);
    return found;
  };
  return {
    ...world,
    instance,
    create: (name: string, own: Parameters<typeof gpuInstance>[1] = {}, annotations?: Record<string, string>) => {
      const made = held(gpuInstance(name, own));
      world.instances.upsert({ ...made, metadata: { ...made.metadata, ...(annotations && { annotations }) } });
    },
    claimed: () =>
      [...world.instances.store.values()].filter(({ status }) => status?.claim).map(({ metadata }) => metadata.name),
    ready: (name: string) => findCondition(instance(name).status?.conditions, 'Ready'),
  };
}
