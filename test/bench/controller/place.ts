import { randomBytes } from 'node:crypto';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { type KubeObject, NAMESPACES, type ResourceType } from '../../../src/kube/types.ts';
import { GPU_INSTANCES, type GpuInstanceSpec } from '../../../src/resources/instances/gpu-instance.ts';
import { TENANT_POLICIES, type TenantPolicySpec } from '../../../src/resources/tenants/tenant-policy.ts';
import { addFleet, type Fleet } from '../../faults/support/fleet.ts';
import { BERTH_EDIT } from '../../support/accounts.ts';
import { addRentalFlow } from '../../support/rental-flow.ts';
import { connectAs } from '../../support/role-account.ts';
import { waitFor } from '../../support/wait-for.ts';
import { pool } from '../figures.ts';
import { type RunningController, startController } from './process.ts';

export const WIDTH = 32;
export const LIMIT_MS = 900_000;
/** Berth's own, which is no tenant. */
export const OWN_NAMESPACE = 'default';

/** A tenant with a fleet of its own, and a controller process. */
export interface BenchPlace extends AsyncDisposable {
  readonly client: KubeClient;
  /** Makes instances and pods. The API server gives administrators other places than tenants. */
  readonly tenant: KubeClient;
  readonly namespace: string;
  readonly fleet: Fleet;
  readonly controller: RunningController;
  /** Another controller process. The first one goes on, so end it before. */
  startController(): Promise<RunningController>;
  /** Creates an instance with one GPU of the fleet. */
  rent(name: string, spec?: Partial<GpuInstanceSpec>): Promise<unknown>;
  /** Deletes all objects of a kind and waits until they are gone. */
  clear(type: ResourceType): Promise<void>;
}

export function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

async function tenantOf(client: KubeClient, kubeconfig: string, namespace: string): Promise<KubeClient> {
  const pods = { apiGroups: [''], resources: ['pods'], verbs: ['create'] };
  const rules = [...BERTH_EDIT, pods];
  const connection = await connectAs(client, kubeconfig, { namespace, name: 'tenant', rules });
  return createKubeClient(connection, { clock: systemClock() });
}

export async function openPlace(options: {
  kubeconfig: string;
  nodes: number;
  gpusPerNode?: number;
}): Promise<BenchPlace> {
  const { kubeconfig, nodes, gpusPerNode } = options;
  const client = createKubeClient(await loadKubeConfig({ kubeconfig }), { clock: systemClock() });
  const namespace = `bench-${randomBytes(3).toString('hex')}`;
  await client.create(NAMESPACES, { metadata: { name: namespace } });
  // The default ceilings of a tenant are lower than the largest size. Its quota is part of what is measured.
  const objects = { instances: 100_000, sshKeys: 100_000, templates: 100_000 };
  const spec = { namespaceLabels: { 'kubernetes.io/metadata.name': namespace }, objects };
  await client.create(TENANT_POLICIES, { metadata: { name: namespace }, spec: spec as unknown as TenantPolicySpec });
  await addRentalFlow(client);
  const tenant = await tenantOf(client, kubeconfig, namespace);
  const fleet = await addFleet(client, namespace, { nodes, gpusPerNode });
  const controller = await startController(kubeconfig, OWN_NAMESPACE);

  async function clear(type: ResourceType): Promise<void> {
    const listed = async (): Promise<KubeObject[]> =>
      (await client.list(type, { namespace, metadataOnly: true })).items;
    await pool(await listed(), WIDTH, ({ metadata }) => client.delete(type, metadata));
    await waitFor(`${type.plural} to be gone`, async () => (await listed()).length === 0, LIMIT_MS);
  }

  return {
    client,
    tenant,
    namespace,
    fleet,
    controller,
    startController: () => startController(kubeconfig, OWN_NAMESPACE),
    rent(name, wanted = {}) {
      const gpu = { product: fleet.product, count: 1 };
      const whole = { ...wanted, gpu } as GpuInstanceSpec;
      return tenant.create(GPU_INSTANCES, { metadata: { namespace, name }, spec: whole });
    },
    clear,
    async [Symbol.asyncDispose]() {
      await clear(GPU_INSTANCES);
      await controller[Symbol.asyncDispose]();
      await client.delete(TENANT_POLICIES, { name: namespace });
      await client.delete(NAMESPACES, { name: namespace });
      await fleet[Symbol.asyncDispose]();
      await tenant.close();
      await client.close();
    },
  };
}
