import { hasInOrder } from '../lib/in-order.ts';
import { isObject } from '../lib/json.ts';

/** `details` of a Kubernetes Status, as far as Berth reads it. */
export interface StatusDetails {
  /** Plural name of the resource that the answer is about. */
  kind?: string;
  retryAfterSeconds?: number;
  causes?: { reason?: string; message?: string; field?: string }[];
}

export interface KubeErrorFields {
  message: string;
  /** Without it, the message. */
  statusMessage?: string;
  /** HTTP status; 0 when no answer came. */
  status: number;
  /** `reason` of the Status body, or a word of Berth when there was none. */
  reason: string;
  details?: StatusDetails | undefined;
  /** How long the server asked to wait, milliseconds. */
  retryAfterMs?: number | undefined;
  /** With GoneError: where a list goes on whose token was too old. */
  continue?: string | undefined;
  cause?: unknown;
}

/** The caller of a call no longer wanted it when it was about to be sent: see `check` of the call's options. */
export class NotSentError extends Error {
  override name = 'NotSentError';
}

/** A call on the API server that failed. The message names the call and the server's words, never a header or a token. */
export class KubeError extends Error {
  override name = 'KubeError';
  /** The server's own words, without the call that they answer. Cut at 1,024 characters. */
  readonly statusMessage: string;
  readonly status: number;
  readonly reason: string;
  readonly details: StatusDetails | undefined;
  readonly retryAfterMs: number | undefined;
  readonly continue: string | undefined;
  /** An earlier attempt of the call may have been carried out: this answer may be about its work. */
  isAfterUnknown = false;

  constructor(fields: KubeErrorFields) {
    super(fields.message, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.statusMessage = fields.statusMessage ?? fields.message;
    this.status = fields.status;
    this.reason = fields.reason;
    this.details = fields.details;
    this.retryAfterMs = fields.retryAfterMs;
    this.continue = fields.continue;
  }
}

/** 404: the object, its namespace or its resource type does not exist. */
export class NotFoundError extends KubeError {
  override name = 'NotFoundError';
}

/** 409 on create: an object of this name exists. */
export class AlreadyExistsError extends KubeError {
  override name = 'AlreadyExistsError';
}

/** 409 on a write: the object changed, another manager owns the field, or a precondition of a delete does not hold. */
export class ConflictError extends KubeError {
  override name = 'ConflictError';
}

/** 422 on a JSON patch: one of its tests failed, or it names a path that the object does not have. */
export class PatchTestFailedError extends ConflictError {
  override name = 'PatchTestFailedError';
}

/** 410: the resource version or the continue token is too old; list again. */
export class GoneError extends KubeError {
  override name = 'GoneError';
}

/** 403: RBAC, a quota or an admission plugin refused the call. */
export class ForbiddenError extends KubeError {
  override name = 'ForbiddenError';
}

/** 403: Kubernetes has not counted yet what a new quota limits. Nothing was written, and it is about to. */
export class QuotaUncountedError extends ForbiddenError {
  override name = 'QuotaUncountedError';
}

/** 409: others of the namespace came at once, and Kubernetes counted none of their quota for this one. Nothing was written. */
export class QuotaContendedError extends ConflictError {
  override name = 'QuotaContendedError';
}

/** 401: the server did not accept the credentials, not even after they were read again. */
export class UnauthorizedError extends KubeError {
  override name = 'UnauthorizedError';
}

/** 422: the object breaks its schema or a rule; `details.causes` names the fields. */
export class InvalidError extends KubeError {
  override name = 'InvalidError';
}

/**
 * 422: a server that has just started does not know the kind of a policy's parameters yet, for up to 30 seconds. Nothing
 * was written, and nothing is wrong with the object.
 */
export class PolicyNotReadyError extends KubeError {
  override name = 'PolicyNotReadyError';
}

/** 429: the server sheds load, or does not allow an eviction now. */
export class TooManyRequestsError extends KubeError {
  override name = 'TooManyRequestsError';
}

/** 504, reason Timeout or ServerTimeout, or the client's own limit. A write may or may not have happened. */
export class TimeoutError extends KubeError {
  override name = 'TimeoutError';
}

/** No answer: the connection was refused, reset or cut off, or the answer is unreadable. A write may have happened. */
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
  metadata?: { continue?: string };
}

function isStatus(body: unknown): body is Status {
  return isObject(body) && body['kind'] === 'Status';
}

const MAX_MESSAGE = 1024;

function forbiddenType(statusMessage: string): KubeErrorClass {
  return says(statusMessage, 'quotaUncounted') ? QuotaUncountedError : ForbiddenError;
}

function conflictType(statusMessage: string): KubeErrorClass {
  return says(statusMessage, 'quotaContended') ? QuotaContendedError : ConflictError;
}

function invalidType(statusMessage: string): KubeErrorClass {
  if (says(statusMessage, 'patchNotApplied')) return PatchTestFailedError;
  return says(statusMessage, 'policyNotReady') ? PolicyNotReadyError : InvalidError;
}

/** Classes of which the words of the API server tell others. */
const NARROWED = new Map<KubeErrorClass, (statusMessage: string) => KubeErrorClass>([
  [InvalidError, invalidType],
  [ForbiddenError, forbiddenType],
  [ConflictError, conflictType],
]);

/** The error for a failed `call` (method and path). `body`: the parsed Status, or the text of a proxy in between. */
export function toKubeError(
  call: string,
  answer: { status: number; body: unknown; retryAfterMs?: number | undefined },
): KubeError {
  const status = isStatus(answer.body) ? answer.body : undefined;
  const byStatus = BY_STATUS[answer.status];
  const reason = status?.reason || byStatus?.[0] || 'Unknown';
  const text = status?.message || (typeof answer.body === 'string' && answer.body.trim()) || 'no message';
  const statusMessage = text.slice(0, MAX_MESSAGE);
  const byReason = BY_REASON[reason] ?? byStatus?.[1] ?? KubeError;
  const type = NARROWED.get(byReason)?.(statusMessage) ?? byReason;
  const details = status?.details;
  const seconds = details?.retryAfterSeconds;
  return new type({
    message: `${call}: ${answer.status} ${reason}: ${statusMessage}`,
    statusMessage,
    status: answer.status,
    reason,
    details,
    retryAfterMs: answer.retryAfterMs ?? (seconds === undefined ? undefined : seconds * 1000),
    continue: status?.metadata?.continue,
  });
}

/** Errors before there is a connection: the server has seen nothing of the call. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** The call was not sent, because nothing takes the connection: to send it again does no harm, whatever it does. */
export function wasNeverSent(error: unknown): error is KubeError {
  return error instanceof KubeError && error.status === 0 && NEVER_SENT.has(error.reason);
}

/** Reasons of a TransportError after the head of an answer. */
const ANSWERED: ReadonlySet<string> = new Set(['BadAnswer', 'BadStream', 'CutOff', 'Idle', 'TooLarge']);

/**
 * Nothing answers: the connection was refused, or closed before an answer began. To ask again soon does no harm, because
 * nothing is there that could be overloaded, and a longer pause would outlast its cause. A call that took too long, or
 * was cut off in the middle of its answer, is another thing.
 */
export function isUnreachable(error: unknown): error is KubeError {
  return error instanceof TransportError && !ANSWERED.has(error.reason);
}

/** The error for an ERROR event in a watch: a Status in the place of the object. */
export function watchEventError(call: string, object: unknown): KubeError {
  const status = isStatus(object) ? (object.code ?? 500) : 500;
  return toKubeError(call, { status, body: object });
}

// What the API server says in words alone: no field of its Status tells these refusals apart. Each is a list of ways to
// say it, in lower case, of parts that follow each other. Paths below staging/src/k8s.io/apiserver/pkg of Kubernetes.
const WORDS = {
  // endpoints/handlers/patch.go, applyJSPatch: the message of every 422 that apimachinery makes without an object.
  patchNotApplied: [['an error in our request']],
  // admission/plugin/resourcequota/controller.go
  quotaExceeded: [['exceeded quota']],
  quotaUncounted: [['status unknown for quota: ']],
  quotaContended: [['operation cannot be fulfilled on resourcequotas ', 'the object has been modified']],
  // The same file, for a quota that the object cannot be counted against.
  quota: [['is forbidden: ', 'quota']],
  // admission/plugin/webhook/errors/statuserror.go
  webhook: [['admission webhook ', ' denied the request']],
  // admission/plugin/policy/validating/dispatcher.go
  policy: [['validatingadmissionpolicy ', ' denied request']],
  // admission/plugin/policy/generic/policy_source.go, compilePolicyLocked; policy_dispatcher.go, CollectParams.
  policyNotReady: [['failed to find resource referenced by paramkind'], ['paramkind kind ', ' not yet synced']],
  // admission/plugin/namespace/lifecycle/admission.go, which since Kubernetes 1.14 adds a cause.
  namespaceTerminating: [['because it is being terminated']],
} as const;

function says(statusMessage: string, what: keyof typeof WORDS): boolean {
  const text = statusMessage.toLowerCase();
  return WORDS[what].some((parts) => hasInOrder(text, parts));
}

/** What a merge patch with the uid of an object finds is not there any more: nothing has its name, or another object. */
export function isGone(error: unknown): boolean {
  if (error instanceof NotFoundError) return true;
  return error instanceof InvalidError && error.details?.causes?.some(({ field }) => field === 'metadata.uid') === true;
}

/** The namespace is being deleted, so nothing can be created in it. */
export function isNamespaceTerminating(error: unknown): boolean {
  if (!(error instanceof ForbiddenError)) return false;
  const causes = error.details?.causes ?? [];
  return (
    causes.some(({ reason }) => reason === 'NamespaceTerminating') || says(error.statusMessage, 'namespaceTerminating')
  );
}

/**
 * 404 on create: there is no such namespace. A kind that the API server does not know, as while its definition is replaced,
 * and the 404 of a proxy in between are other things: they pass.
 */
export function isNamespaceAbsent(error: unknown): boolean {
  return error instanceof NotFoundError && error.details?.kind === 'namespaces';
}

/** A ResourceQuota of the namespace has no room for the object. */
export function isQuotaExceeded(error: unknown): boolean {
  return error instanceof ForbiddenError && says(error.statusMessage, 'quotaExceeded');
}

/** A ValidatingAdmissionPolicy refuses the call. */
export function isDeniedByPolicy(error: unknown): boolean {
  return error instanceof ForbiddenError && says(error.statusMessage, 'policy');
}

/** A rule of the cluster refuses the object: a quota, an admission webhook or a ValidatingAdmissionPolicy. */
export function isPolicyRefusal(error: KubeError): boolean {
  const { status, statusMessage } = error;
  if (error instanceof QuotaUncountedError) return false;
  // The API server answers 400 for a webhook that names no status.
  if (status !== 403) return status === 400 && says(statusMessage, 'webhook');
  return (['quotaExceeded', 'quota', 'webhook', 'policy'] as const).some((words) => says(statusMessage, words));
}
