import type { ClientError, Overflow } from '../types.ts';

/** An error for the client: its request is malformed, asks for what the engine does not offer, or cannot be served. */
export class DialectError extends Error {
  override readonly name = 'DialectError';
  readonly status: number;
  readonly code: string | null;
  readonly param: string | null;
  readonly overflow: Overflow | undefined;

  constructor(error: ClientError) {
    super(error.message);
    this.status = error.status;
    this.code = error.code ?? null;
    this.param = error.param ?? null;
    this.overflow = error.overflow;
  }
}

/** A 400 for a field of the wrong shape. `param` is its path as OpenAI writes it (`messages[0].content`). */
export function invalid(param: string, expected: string): DialectError {
  return new DialectError({ status: 400, message: `Invalid '${param}': ${expected}.`, code: 'invalid_value', param });
}

/** A 400 for something that the gateway or the chosen engine does not offer. */
export function unsupported(param: string, message: string): DialectError {
  return new DialectError({ status: 400, message, code: 'unsupported_parameter', param });
}
