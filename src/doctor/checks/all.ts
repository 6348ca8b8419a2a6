import type { Check } from '../finding.ts';
import { admission } from './admission.ts';
import { clocks } from './clocks.ts';
import { definitions } from './definitions.ts';
import { gpuNodes } from './gpu-nodes.ts';
import { isolation } from './isolation.ts';
import { exporters, monitors } from './metrics.ts';
import { network } from './network.ts';
import { nodeLabels } from './node-labels.ts';
import { poolSettings } from './pools.ts';
import { roles } from './roles.ts';
import { tenants } from './tenants.ts';
import { versions } from './versions.ts';
import { webhooks } from './webhooks.ts';

/** Every check, in the order in which an operator mends: what runs first, then what is for rent, then who is kept apart. */
export const CHECKS: readonly Check[] = [
  versions,
  definitions,
  roles,
  clocks,
  gpuNodes,
  nodeLabels,
  poolSettings,
  isolation,
  admission,
  network,
  webhooks,
  tenants,
  monitors,
  exporters,
];
