/** A failure that its reader can act on: a line of cause, a line of remedy, and the last output of what failed. */
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

/** The text for a terminal: cause, remedy, then the details, indented. An unexpected error keeps its stack. */
export function explainFailure(error: unknown): string {
  if (systemCode(error) === 'ENOSPC') {
    return `Error: The disk is full (${error instanceof Error ? error.message : ''}).\nNext step: Free some space, and run the command again.`;
  }
  if (!(error instanceof LocalFailure)) return error instanceof Error ? (error.stack ?? error.message) : String(error);
  const details = error.details.map((line) => `  | ${line}`);
  return [`Error: ${error.message}`, `Next step: ${error.remedy}`, ...details].join('\n');
}

/** Runs the main function of a script. A failure is explained on standard error and makes the exit code 1. */
export async function runMain(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    process.stderr.write(`${explainFailure(error)}\n`);
    process.exitCode = 1;
  }
}

/** The `code` of a system error such as ENOSPC, or undefined. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
