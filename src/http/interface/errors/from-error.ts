import { InvalidError, isNamespaceTerminating, isPolicyRefusal, KubeError } from '../../../kube/errors.ts';
import { isObject, type Json } from '../../../lib/json.ts';
import { ApiError, validationFailed } from './api-error.ts';
import { tenantLimitOf } from './tenant-limit.ts';

const RETRY_SECONDS = 2;

const MAX_WORDS = 500;

/** The words of the chart's admission policy `tenants`, which say what the operator does about it. */
const NOT_A_TENANT = /namespace \S+ is no tenant of Berth\b.*/s;

function fromKube(error: KubeError): ApiError {
  if (isNamespaceTerminating(error)) {
    return new ApiError('tenant_unavailable', 'The namespace of this key is being deleted.', { cause: error });
  }
  if (error instanceof InvalidError) {
    const causes = error.details?.causes ?? [];
    return validationFailed(causes.map(({ field, message }) => ({ path: field ?? '', expected: message ?? '' })));
  }
  if (error.status === 413 || TOO_LARGE.test(error.statusMessage)) {
    return new ApiError('payload_too_large', 'The texts of the body are longer than Kubernetes stores. Shorten them.', {
      cause: error,
    });
  }
  const overCeiling = tenantLimitOf(error);
  if (overCeiling !== undefined) return overCeiling;
  if (isPolicyRefusal(error)) {
    const words = error.statusMessage.slice(0, MAX_WORDS);
    const [outside] = NOT_A_TENANT.exec(words) ?? [];
    if (outside !== undefined) return new ApiError('not_a_tenant', `Nothing was made: ${outside}`, { cause: error });
    return new ApiError('quota_exceeded', `The cluster refuses: ${words}`, { cause: error });
  }
  return new ApiError('cluster_unavailable', 'Kubernetes failed to answer. Try again in some seconds.', {
    retryAfterSeconds: RETRY_SECONDS,
    cause: error,
  });
}

/** What Express throws, for example for a path that is no valid URL encoding. */
function fromHttp(cause: Json): ApiError | undefined {
  const { status } = cause;
  if (typeof status !== 'number' || status < 400 || status >= 500) return undefined;
  return new ApiError('bad_request', 'The request is not valid HTTP. Check its path, headers and body.', { cause });
}

/** The words of etcd and of the API server's client of it: the object takes more than 1.5 or 2 MiB there. */
const TOO_LARGE = /request is too large|trying to send message larger than max/;

export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof KubeError) return fromKube(error);
  const http = isObject(error) ? fromHttp(error) : undefined;
  return http ?? new ApiError('internal_error', 'Berth failed. Try again, or report it.', { cause: error });
}
