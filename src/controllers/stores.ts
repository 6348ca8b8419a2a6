import type { Stores } from '../caches/caches.ts';
import type { CacheName } from '../caches/table.ts';

/** The caches that the controllers read. */
export const CONTROLLER_CACHES = [
  'instances',
  'sshKeys',
  'templates',
  'apiKeys',
  'pools',
  'tenantPolicies',
  'tenantLimits',
  'registries',
  'nodes',
  'pods',
  'disks',
  'namespaces',
  'quotas',
  'storageClasses',
] as const satisfies CacheName[];

export type ControllerStores = Stores<(typeof CONTROLLER_CACHES)[number]>;
