import { ForbiddenError, type KubeError, QuotaUncountedError } from '../../../kube/errors.ts';
import { parseQuantity } from '../../../kube/quantity.ts';
import { TENANT_LIMIT_NAME } from '../../../resources/tenants/tenant-limit.ts';
import { whoCanChange } from '../../../resources/tenants/who-can-change.ts';
import { ApiError } from './api-error.ts';

/** Resources that the tenant's ResourceQuota counts: what people call them, and their field in spec.objects. */
const COUNTED: Readonly<Record<string, readonly [words: string, field: string]>> = {
  gpuinstances: ['instances', 'instances'],
  sshkeys: ['SSH keys', 'sshKeys'],
  instancetemplates: ['templates', 'templates'],
  apikeys: ['API keys', 'apiKeys'],
  webhooks: ['webhooks', 'webhooks'],
  registrycredentials: ['credentials of registries', 'registries'],
};

// The words of the API server (admission/plugin/resourcequota/controller.go) about the quota of this name.
const EXCEEDED = `exceeded quota: ${TENANT_LIMIT_NAME}, requested: `;
const USED = /used: count\/(\w+)\.[\w.]+=(\w+)/;
const LIMITED = /limited: [\w./]+=(\w+)/;
// The chart names its policy so, after the release.
const POLICY = /ValidatingAdmissionPolicy '[\w.-]*-ceilings' /;
const DENIED = 'denied request: ';

const MAX_WORDS = 500;

/** The answer for a refusal by the tenant's ResourceQuota or by the admission policy for ceilings; undefined for others. */
export function tenantLimitOf(error: KubeError): ApiError | undefined {
  if (!(error instanceof ForbiddenError)) return undefined;
  const { statusMessage } = error;
  if (error instanceof QuotaUncountedError) {
    const message = 'Kubernetes has not counted the objects of the tenant yet. Try again in some seconds.';
    return new ApiError('cluster_unavailable', message, { retryAfterSeconds: 5, cause: error });
  }
  const counts = statusMessage.includes(EXCEEDED) ? statusMessage : '';
  const [, plural = '', used = ''] = USED.exec(counts) ?? [];
  const [, limited = ''] = LIMITED.exec(counts) ?? [];
  const [words, field] = COUNTED[plural] ?? [];
  if (words !== undefined) {
    const message = `Nothing was made. This tenant may have ${parseQuantity(limited)} ${words} and has ${parseQuantity(used)}. Delete one. ${whoCanChange(`objects.${field}`)}`;
    return new ApiError('tenant_limit', message, { cause: error });
  }
  const at = POLICY.test(statusMessage) ? statusMessage.indexOf(DENIED) : -1;
  if (at === -1) return undefined;
  const said = statusMessage.slice(at + DENIED.length);
  return new ApiError('tenant_limit', `Nothing was made. ${said.slice(0, MAX_WORDS)}`, { cause: error });
}
