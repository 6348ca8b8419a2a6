/** Why a terminal is not opened, in the words of the HTTP interface. */
export class TerminalRefusal extends Error {
  override name = 'TerminalRefusal';
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }

  get body(): string {
    return JSON.stringify({ error: { message: this.message, code: this.code } });
  }
}
