/** What the program ends with. The numbers are an interface: scripts compare them, docs/use/cli.md lists them. */
export const EXIT = {
  done: 0,
  /** The server refused, or what was asked for failed. */
  failed: 1,
  usage: 2,
  /** No key, or the server does not take it for this. */
  access: 3,
  notFound: 4,
  /** Nothing that fits is free. */
  noCapacity: 5,
  /** The server was not reached, or is too busy now: the same command may work later. */
  unavailable: 6,
  /** `berth run`: the program began, and its end or its files are not known. */
  lost: 125,
  interrupted: 130,
} as const;

/** What the program prints in place of a result: what happened, why, and what to do. */
export class CliFailure extends Error {
  override name = 'CliFailure';
  readonly exitCode: number;
  /** The next step, as a sentence of its own. */
  readonly next: string | undefined;

  constructor(message: string, options: { exitCode?: number; next?: string | undefined } = {}) {
    super(message);
    this.exitCode = options.exitCode ?? EXIT.failed;
    this.next = options.next;
  }
}

/** The command line is not valid. */
export function usageFailure(message: string, next?: string): CliFailure {
  return new CliFailure(message, { exitCode: EXIT.usage, next });
}
