/** The prompt of a request, which is at one endpoint at a time. */
export interface Prompt {
  /** An estimate. */
  readonly promptTokens: number;
  readonly inspection: { readonly stream: boolean };
}

/** Engines read as many short prompts in one step, also before anybody knows how fast they are. */
const STEP_TOKENS = 1024;
/** How much of a new measurement of its speed counts. */
const NEWS = 1 / 4;
/** How long before an engine has read what it has the next prompt goes there: the way, and a step of the engine. */
const LEAD_MS = 20;
/**
 * A process that is busy sends late, and an estimate errs. An engine that had the next prompt for less time when it had
 * read the one before gets the next sooner.
 */
const LATE_MS = 15;
const SOONER_MS = 10;
const LATER_MS = 1;
/** As good as no bound: a process that is as late as this does not keep the engine idle, too. */
const MOST_LEAD_MS = 250;

/**
 * The prompts that an engine has and has not read. It reads them in the order in which they came, so each that it gets
 * holds up whoever comes next: it gets another one when it is about to have read what it has. In a simulation of vLLM's
 * steps it then loses next to nothing, and a call that comes next waits for about one prompt.
 *
 * The first byte of a stream says that its prompt was read. Nothing says so of a whole answer, whose prompt takes as long
 * as others did.
 */
export class Prefill {
  /** In the order in which the engine got them. Times are milliseconds, monotonic. */
  readonly #unread: { prompt: Prompt; sentAt: number }[] = [];
  #tokens = 0;
  /** When it began with the first of them. */
  #begunAt = -Infinity;
  /** Since when `#read` counts. */
  #measuredAt = 0;
  #read = 0;
  #tokensPerMs = 0;
  #leadMs = LEAD_MS;

  /** @param hasWaited for its turn */
  sent(prompt: Prompt, now: number, hasWaited = false): void {
    if (this.#unread.length === 0) {
      if (hasWaited && now - this.#begunAt < MOST_LEAD_MS) this.#sendSooner();
      this.#begunAt = now;
      this.#measuredAt = now;
      this.#read = 0;
    }
    this.#unread.push({ prompt, sentAt: now });
    this.#tokens += prompt.promptTokens;
  }

  /** Its answer has begun: it was read, and so were those before it. */
  answered(prompt: Prompt, now: number): void {
    const last = this.#indexOf(prompt);
    if (last === -1) return;
    for (let index = 0; index <= last; index += 1) this.#shift();
    this.#begunAt = now;
    const [next] = this.#unread;
    if (next !== undefined && now - next.sentAt < LATE_MS) this.#sendSooner();
    else if (next !== undefined) this.#leadMs = Math.max(LEAD_MS, this.#leadMs - LATER_MS);
    this.#measure(now);
  }

  /** Its request is over. */
  gone(prompt: Prompt): void {
    const index = this.#indexOf(prompt);
    if (index === -1) return;
    this.#unread.splice(index, 1);
    this.#tokens -= prompt.promptTokens;
  }

  /** Milliseconds until one more may go there: 0 where it may now, Infinity where only an answer can say. */
  roomIn(now: number): number {
    this.#skipWhole(now);
    const [head] = this.#unread;
    const over = this.#tokens - Math.max(STEP_TOKENS, this.#tokensPerMs * this.#leadMs);
    if (head === undefined || over <= 0) return 0;
    // No more than the first of them can be read in part.
    if (over >= head.prompt.promptTokens || this.#tokensPerMs === 0) return Infinity;
    return Math.max(0, Math.ceil(over / this.#tokensPerMs - (now - this.#begunAt)));
  }

  #sendSooner(): void {
    this.#leadMs = Math.min(MOST_LEAD_MS, this.#leadMs + SOONER_MS);
  }

  #measure(now: number): void {
    const passed = now - this.#measuredAt;
    if (this.#read < STEP_TOKENS || passed <= 0) return;
    const news = this.#tokensPerMs === 0 ? 1 : NEWS;
    this.#tokensPerMs += (this.#read / passed - this.#tokensPerMs) * news;
    this.#measuredAt = now;
    this.#read = 0;
  }

  #skipWhole(now: number): void {
    for (let [head] = this.#unread; head?.prompt.inspection.stream === false; [head] = this.#unread) {
      const ms = this.#tokensPerMs === 0 ? 0 : head.prompt.promptTokens / this.#tokensPerMs;
      if (this.#begunAt + ms > now) return;
      this.#begunAt += ms;
      this.#shift();
    }
  }

  #indexOf(prompt: Prompt): number {
    return this.#unread.findIndex((one) => one.prompt === prompt);
  }

  #shift(): void {
    const tokens = this.#unread.shift()?.prompt.promptTokens ?? 0;
    this.#tokens -= tokens;
    this.#read += tokens;
  }
}
