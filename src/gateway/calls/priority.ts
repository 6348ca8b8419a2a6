import type { Priority } from '../../resources/api-key.ts';
import type { Call } from './call.ts';

/** The priority of a call among those of its tenant: that of its key, or what it asks for itself. No key of low priority gets more. */
export function priorityOf({ principal, body }: Pick<Call, 'principal' | 'body'>): Priority {
  const { priority = 'normal' } = principal;
  if (body.service_tier === 'flex') return 'low';
  return body.service_tier === 'priority' && priority !== 'low' ? 'high' : priority;
}
