import type { ResourceType } from '../../../src/kube/types.ts';
import { type Fields, pathsOf } from './fields.ts';

/** A refusal as the API server answers it, in its words. */
export class Failure extends Error {
  override name = 'Failure';
  readonly code: number;
  readonly reason: string;
  readonly details: object | undefined;

  constructor(code: number, reason: string, message: string, details?: object) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  get body(): object {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      reason: this.reason,
      ...(this.details !== undefined && { details: this.details }),
      code: this.code,
    };
  }
}

function resourceOf({ group, plural }: ResourceType): string {
  return group === '' ? plural : `${plural}.${group}`;
}

function detailsOf({ group, plural }: ResourceType, name: string): object {
  return { name, ...(group !== '' && { group }), kind: plural };
}

export function notFound(type: ResourceType, name: string): Failure {
  return new Failure(404, 'NotFound', `${resourceOf(type)} "${name}" not found`, detailsOf(type, name));
}

export function alreadyExists(type: ResourceType, name: string): Failure {
  return new Failure(409, 'AlreadyExists', `${resourceOf(type)} "${name}" already exists`, detailsOf(type, name));
}

export function conflict(type: ResourceType, name: string, why: string): Failure {
  const message = `Operation cannot be fulfilled on ${resourceOf(type)} "${name}": ${why}`;
  return new Failure(409, 'Conflict', message, detailsOf(type, name));
}

/** The refusal of an apply that was not forced. */
export function fieldConflict(fields: ReadonlyMap<string, Fields>): Failure {
  const causes = [...fields].flatMap(([manager, owned]) =>
    pathsOf(owned).map((field) => ({
      reason: 'FieldManagerConflict',
      message: `conflict with ${JSON.stringify(manager.split('/').slice(2).join('/'))}`,
      field,
    })),
  );
  return new Failure(409, 'Conflict', `Apply failed with ${causes.length} conflicts`, { causes });
}

export function withoutManager(): Failure {
  const message = 'fieldManager: Required value: is required for apply patch';
  const causes = [{ reason: 'FieldValueRequired', message, field: 'fieldManager' }];
  return new Failure(422, 'Invalid', `PatchOptions.meta.k8s.io "" is invalid: ${message}`, { causes });
}

export const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

export function forbidden(type: ResourceType, name: string, why: string, causes?: object[]): Failure {
  const details = { ...detailsOf(type, name), ...(causes !== undefined && { causes }) };
  return new Failure(403, 'Forbidden', `${resourceOf(type)} "${name}" is forbidden: ${why}`, details);
}

export function invalid(type: ResourceType, name: string, why: string, field?: string): Failure {
  const reason = why.includes(': Forbidden: ') ? 'FieldValueForbidden' : 'FieldValueInvalid';
  const message = `${type.kind}${type.group === '' ? '' : `.${type.group}`} "${name}" is invalid: ${why}`;
  const causes = field === undefined ? {} : { causes: [{ reason, message: why, field }] };
  return new Failure(422, 'Invalid', message, { ...detailsOf(type, name), kind: type.kind, ...causes });
}

/** The message of every 422 that apimachinery makes of a patch that cannot be applied. */
export function patchNotApplied(): Failure {
  return new Failure(422, 'Invalid', 'the server rejected our request due to an error in our request', {});
}

export function expired(): Failure {
  return new Failure(410, 'Expired', 'too old resource version');
}

export function badRequest(message: string): Failure {
  return new Failure(400, 'BadRequest', message);
}
