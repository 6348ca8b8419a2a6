/** No server of the model is ready, and this call waits for none any more. The message is for the caller. */
export class StartError extends Error {
  override readonly name = 'StartError';
  /** Milliseconds after which another call may do better. */
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs: number) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}
