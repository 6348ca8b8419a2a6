/** `details` of a Kubernetes Status, as far as we read it. */
export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  retryAfterSeconds?: number;
  causes?: { reason?: string; message?: string; field?: string }[];
}

export interface KubeErrorFields {
  message: string;
  /** HTTP status; 0 when no answer came. */
  status: number;
  /** `reason` of the Status body, or a word of ours when there was none. */
  reason: string;
  details?: StatusDetails | undefined;
  /** How long the server asked to wait, milliseconds. */
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** A call on the API server that failed. The message names the call and the server's words; never a header or a token. */
export class KubeError extends Error {
  override name = 'KubeError';
  readonly status: number;
  readonly reason: string;
  readonly details: StatusDetails | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(fields: KubeErrorFields) {
    super(fields.message, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.status = fields.status;
    this.reason = fields.reason;
    this.details = fields.details;
    this.retryAfterMs = fields.retryAfterMs;
  }
}

/** 404: the object, its namespace or its whole resource type is not there. */
export class NotFoundError extends KubeError {
  override name = 'NotFoundError';
}

/** 409 on create: an object of this name is there already. */
export class AlreadyExistsError extends KubeError {
  override name = 'AlreadyExistsError';
}

/** 409 on a write: the object changed, another manager owns the field, or a precondition of a delete does not hold. */
export class ConflictError extends KubeError {
  override name = 'ConflictError';
}

/** 410: the resource version or continue token is too old; list again. */
export class GoneError extends KubeError {
  override name = 'GoneError';
}

/** 403: RBAC, quota or an admission plugin refused. */
export class ForbiddenError extends KubeError {
  override name = 'ForbiddenError';
}

/** 401: the credentials were not accepted, also after they were read anew. */
export class UnauthorizedError extends KubeError {
  override name = 'UnauthorizedError';
}

/** 422: the object breaks its schema or a rule; `details.causes` names the fields. */
export class InvalidError extends KubeError {
  override name = 'InvalidError';
}

/** 429: the server sheds load, or an eviction is not allowed now. */
export class TooManyRequestsError extends KubeError {
  override name = 'TooManyRequestsError';
}

/** 504, reason Timeout or ServerTimeout, or our own limit: a write may or may not have happened. */
export class TimeoutError extends KubeError {
  override name = 'TimeoutError';
}

/** No answer: refused, reset, cut off or unreadable. A write may or may not have happened. */
export class TransportError extends KubeError {
  override name = 'TransportError';
}

/** The kubeconfig or the service account cannot be used. Fatal at start. */
export class KubeConfigError extends Error {
  override name = 'KubeConfigError';
}

type KubeErrorClass = new (fields: KubeErrorFields) => KubeError;

// Reasons before codes, like client-go's ReasonForError: several reasons share the codes 409, 410 and 500.
const BY_REASON: Readonly<Record<string, KubeErrorClass>> = {
  NotFound: NotFoundError,
  AlreadyExists: AlreadyExistsError,
  Conflict: ConflictError,
  Gone: GoneError,
  Expired: GoneError,
  Forbidden: ForbiddenError,
  Unauthorized: UnauthorizedError,
  Invalid: InvalidError,
  TooManyRequests: TooManyRequestsError,
  Timeout: TimeoutError,
  ServerTimeout: TimeoutError,
};

const BY_STATUS: Readonly<Record<number, readonly [reason: string, type: KubeErrorClass]>> = {
  401: ['Unauthorized', UnauthorizedError],
  403: ['Forbidden', ForbiddenError],
  404: ['NotFound', NotFoundError],
  409: ['Conflict', ConflictError],
  410: ['Gone', GoneError],
  422: ['Invalid', InvalidError],
  429: ['TooManyRequests', TooManyRequestsError],
  504: ['Timeout', TimeoutError],
};

interface Status {
  kind: 'Status';
  code?: number;
  reason?: string;
  message?: string;
  details?: StatusDetails;
}

function isStatus(body: unknown): body is Status {
  return typeof body === 'object' && body !== null && (body as { kind?: unknown }).kind === 'Status';
}

const MAX_MESSAGE = 1024;

/**
 * The error for an answer that was not a success. `body` is the parsed body (a Status from the API server) or its text
 * (from a proxy in between); `call` is method and path without the query.
 */
export function toKubeError(
  call: string,
  answer: { status: number; body: unknown; retryAfterMs?: number | undefined },
): KubeError {
  const status = isStatus(answer.body) ? answer.body : undefined;
  const byStatus = BY_STATUS[answer.status];
  const reason = status?.reason || byStatus?.[0] || 'Unknown';
  const type = BY_REASON[reason] ?? byStatus?.[1] ?? KubeError;
  const text = status?.message || (typeof answer.body === 'string' && answer.body.trim()) || 'no message';
  const details = status?.details;
  const seconds = details?.retryAfterSeconds;
  return new type({
    message: `${call}: ${answer.status} ${reason}: ${text.slice(0, MAX_MESSAGE)}`,
    status: answer.status,
    reason,
    details,
    retryAfterMs: answer.retryAfterMs ?? (seconds === undefined ? undefined : seconds * 1000),
  });
}

/** The error for an ERROR event in a watch: a Status in the place of the object. */
export function watchEventError(call: string, object: unknown): KubeError {
  const status = isStatus(object) ? (object.code ?? 500) : 500;
  return toKubeError(call, { status, body: object });
}

/** True for a Status with this cause, for example `NamespaceTerminating` or `ResourceVersionTooLarge`. */
export function hasCause(error: unknown, reason: string): boolean {
  return error instanceof KubeError && (error.details?.causes ?? []).some((cause) => cause.reason === reason);
}
