import { InvalidError, isNamespaceTerminating, isPolicyRefusal, KubeError } from '../../kube/errors.ts';
import { ApiError, validationFailed } from './api-error.ts';

/** What Express raises, for example for a path that is no valid URL encoding. */
interface HttpError {
  status?: unknown;
}

const RETRY_SECONDS = '2';

const MAX_WORDS = 500;

function fromKube(error: KubeError): ApiError {
  if (isNamespaceTerminating(error)) {
    return new ApiError('tenant_unavailable', 'The namespace of this key is being deleted.', { cause: error });
  }
  if (error instanceof InvalidError) {
    const causes = error.details?.causes ?? [];
    return validationFailed(causes.map(({ field, message }) => ({ path: field ?? '', expected: message ?? '' })));
  }
  if (isPolicyRefusal(error)) {
    const words = error.statusMessage.slice(0, MAX_WORDS);
    return new ApiError('quota_exceeded', `The cluster refuses: ${words}`, { cause: error });
  }
  return new ApiError('cluster_unavailable', 'Kubernetes does not answer as it should. Try again in some seconds.', {
    headers: { 'retry-after': RETRY_SECONDS },
    cause: error,
  });
}

function fromHttp({ status }: HttpError, cause: unknown): ApiError | undefined {
  if (typeof status !== 'number' || status < 400 || status >= 500) return undefined;
  return new ApiError('bad_request', 'The request cannot be understood: check path, headers and body.', { cause });
}

/** What any thrown value becomes for the client. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof KubeError) return fromKube(error);
  const http = typeof error === 'object' && error !== null ? fromHttp(error, error) : undefined;
  return http ?? new ApiError('internal_error', 'Something went wrong on our side.', { cause: error });
}
