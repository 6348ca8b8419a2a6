import type { InstanceRecord } from '../../../wire/records.ts';
import { CallError, type Method } from '../calls/call.ts';

/** An instance for which a call was refused, and why. */
interface Left {
  instance: InstanceRecord;
  error: unknown;
}

/** What is to be deleted may be gone: another tab or an earlier try may have deleted it. */
function isDone(method: Method, error: unknown): boolean {
  return method === 'DELETE' && error instanceof CallError && error.status === 404;
}

/**
 * Makes a call for each instance, whatever becomes of the others, and returns those that are left to be tried again.
 * Rejects when the session is over, with which no other call works either.
 */
export async function leftOf(
  instances: readonly InstanceRecord[],
  method: Method,
  call: (instance: InstanceRecord) => Promise<unknown>,
): Promise<Left[]> {
  const left: Left[] = [];
  for (const instance of instances) {
    try {
      await call(instance);
    } catch (error) {
      if (error instanceof CallError && error.code === 'not_signed_in') throw error;
      if (!isDone(method, error)) left.push({ instance, error });
    }
  }
  return left;
}
