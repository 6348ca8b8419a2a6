import { apiKeyResource } from './api-key.ts';
import { gpuInstanceResource } from './instances/gpu-instance.ts';
import { gpuPoolResource } from './gpu-pool.ts';
import { instanceTemplateResource } from './instance-template.ts';
import { instanceHistoryResource } from './instance-history.ts';
import { instanceLogResource } from './instance-log.ts';
import { modelServerResource } from './model-servers/model-server.ts';
import { registryCredentialResource } from './registry-credential.ts';
import type { CustomResource } from './schema.ts';
import { sshKeyResource } from './ssh-key.ts';
import { tenantLimitResource } from './tenants/tenant-limit.ts';
import { tenantPolicyResource } from './tenants/tenant-policy.ts';
import { tokenRecordResource } from './token-record.ts';
import { usageRecordResource } from './usage-record.ts';
import { webhookResource } from './webhook.ts';

/** Every custom resource, in the order of `crds/`. */
export const CUSTOM_RESOURCES: readonly CustomResource[] = [
  gpuInstanceResource,
  sshKeyResource,
  instanceTemplateResource,
  apiKeyResource,
  gpuPoolResource,
  usageRecordResource,
  tenantPolicyResource,
  tenantLimitResource,
  registryCredentialResource,
  instanceHistoryResource,
  instanceLogResource,
  tokenRecordResource,
  webhookResource,
  modelServerResource,
];
