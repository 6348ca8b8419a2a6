import { ApiError } from './api-error.ts';

const RETRY_SECONDS = 5;

/**
 * 429: the tenant has as much under way in this replica as it may.
 *
 * @param lift who can change that
 */
export function tooManyAtOnce(what: string, lift: string): ApiError {
  return new ApiError(
    'too_many_at_once',
    `This tenant may have ${what} at once in a replica. Wait for a request to end. ${lift}`,
    { retryAfterSeconds: RETRY_SECONDS },
  );
}

/** 503: the replica has as much under way as it takes; what is left is kept for others. */
export function overloaded(what: string): ApiError {
  return new ApiError('overloaded', `This replica holds too many ${what} now. Try again in some seconds.`, {
    retryAfterSeconds: RETRY_SECONDS,
  });
}

/** 503: clients of the tenant have asked for more than they take. */
export function unread(): ApiError {
  return overloaded('bytes of answers that clients of this tenant do not read');
}
