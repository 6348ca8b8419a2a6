import { type ErrorCode, ERRORS } from './catalogue.ts';
import { helpOfModels } from './families.ts';

export interface FieldError {
  /** Path in JavaScript notation, for example ssh_key_ids[1]. Empty for the body itself. */
  path: string;
  expected: string;
}

export interface ApiErrorOptions {
  /** Fields of `error` beside message and code. */
  extra?: Record<string, unknown>;
  headers?: Record<string, string>;
  retryAfterSeconds?: number;
  cause?: unknown;
}

/** A failure and its answer. `message` is for the client: what happened, why, and what to do. */
export class ApiError extends Error {
  override name = 'ApiError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly extra: Record<string, unknown>;
  readonly headers: Record<string, string>;

  constructor(code: ErrorCode, message: string, options: ApiErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.status = ERRORS[code].status;
    this.extra = options.extra ?? {};
    const wait = options.retryAfterSeconds;
    this.headers = { ...options.headers, ...(wait !== undefined && { 'retry-after': String(wait) }) };
  }
}

/** The 404 for a path that no endpoint has. */
export function noEndpoint({ url = '' }: { url?: string | undefined } = {}): ApiError {
  const help = helpOfModels(url.split('?', 1)[0] ?? '') ?? 'See /docs for the endpoints.';
  return new ApiError('not_found', `No endpoint has this path. ${help}`);
}

/** The 422 with its list of fields. */
export function validationFailed(fields: readonly FieldError[]): ApiError {
  const names = fields.map(({ path, expected }) =>
    (path === '' ? expected : `${path}: ${expected}`).replace(/\.$/, ''),
  );
  return new ApiError('validation_failed', `The request is not valid. ${names.slice(0, 5).join('; ')}.`, {
    extra: { fields },
  });
}
