import { PatchTestFailedError } from '../../src/kube/errors.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { jsonPatch, type Operation, PatchError } from '../simulation/api/patch.ts';

/** The object as the API server has it after a JSON patch, which rejects as its client does. */
export function patched<T extends KubeObject>(object: T, body: unknown): T {
  try {
    // As JSON has it: no field is undefined.
    return jsonPatch(object, JSON.parse(JSON.stringify(body)) as Operation[]) as T;
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    throw new PatchTestFailedError({ status: 422, reason: 'Invalid', message: error.message });
  }
}
