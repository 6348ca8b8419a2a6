import type { ClientError } from '../types.ts';

/** A client body that cannot be served: malformed, or asking for something no backend of this kind offers. */
export class DialectError extends Error {
  override readonly name = 'DialectError';
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly param: string | null;

  constructor(error: ClientError) {
    super(error.message);
    this.status = error.status;
    this.type = error.type ?? 'invalid_request_error';
    this.code = error.code ?? null;
    this.param = error.param ?? null;
  }
}

/** The 400 for a field of the wrong shape; `param` is its path, as OpenAI writes it (`messages[0].content`). */
export function invalid(param: string, expected: string): DialectError {
  return new DialectError({ status: 400, message: `Invalid '${param}': ${expected}.`, code: 'invalid_value', param });
}

/** The 400 for something well formed that this gateway or the chosen backend does not offer. */
export function unsupported(param: string, message: string): DialectError {
  return new DialectError({ status: 400, message, code: 'unsupported_parameter', param });
}
