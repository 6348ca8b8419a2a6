/** A failure that its reader can act on: one line of cause, one of remedy, and the last words of what failed. */
export class LocalFailure extends Error {
  override readonly name = 'LocalFailure';
  readonly remedy: string;
  readonly details: readonly string[];

  constructor(cause: string, remedy: string, details: readonly string[] = []) {
    super(cause);
    this.remedy = remedy;
    this.details = details;
  }
}

/** The text for a terminal: cause, remedy, then the details indented. Anything unexpected keeps its stack. */
export function explainFailure(error: unknown): string {
  if (systemCode(error) === 'ENOSPC') {
    return `Error: The disk is full (${error instanceof Error ? error.message : ''}).\nWhat to do: Free some space and start again.`;
  }
  if (!(error instanceof LocalFailure)) return error instanceof Error ? (error.stack ?? error.message) : String(error);
  const details = error.details.map((line) => `  | ${line}`);
  return [`Error: ${error.message}`, `What to do: ${error.remedy}`, ...details].join('\n');
}

/** The `code` of a system error such as ENOSPC, or undefined. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
