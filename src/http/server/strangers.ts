import type { IncomingMessage } from 'node:http';
import { clientNetwork } from '../../lib/client-network.ts';
import { FairShares } from '../../lib/shares.ts';
import { ApiError } from '../interface/errors/api-error.ts';
import type { Step } from '../interface/step.ts';
import type { Turns } from './turns.ts';

/** Requests of strangers under way in a replica. A client alone has 57. */
const AT_ONCE = 512;
/** A client may have as many as an eighth of what is free. */
const FACTOR = 1 / 8;
const RETRY_SECONDS = 2;
/** Among tenants, strangers are one more. No namespace has this name. */
const STRANGERS = '';

/**
 * Lets requests without a valid key begin. All of them together have the turn of one tenant, in which their clients take
 * turns, so that many clients slow down neither the tenants nor each other.
 */
export class Strangers {
  readonly #turns: Turns;
  /** Requests that wait, by client. The client whose turn is next comes first. */
  readonly #lines = new Map<string, (() => void)[]>();
  #asksForTurn = false;

  constructor(turns: Turns) {
    this.#turns = turns;
  }

  take(client: string, begin: () => void): void {
    const line = this.#lines.get(client);
    if (line === undefined) this.#lines.set(client, [begin]);
    else line.push(begin);
    this.#askForTurn();
  }

  #askForTurn(): void {
    if (this.#asksForTurn) return;
    this.#asksForTurn = true;
    this.#turns.take(STRANGERS, () => {
      this.#asksForTurn = false;
      this.#beginNext();
    });
  }

  #beginNext(): void {
    const [[client, line] = ['', []]] = this.#lines;
    const begin = line.shift();
    this.#lines.delete(client);
    if (line.length > 0) this.#lines.set(client, line);
    begin?.();
    if (this.#lines.size > 0) this.#askForTurn();
  }
}

/** @param addressOf where the client of a request is */
export function shareAmongStrangers(turns: Turns, addressOf: (request: IncomingMessage) => string): Step {
  const strangers = new Strangers(turns);
  const shares = new FairShares(AT_ONCE, FACTOR);
  return (request, response, next) => {
    if (response.closed) return;
    const client = clientNetwork(addressOf(request));
    if (shares.take(client, 1) !== 'taken') {
      throw new ApiError('too_many_at_once', 'Too many requests of this address are under way. Wait for one to end.', {
        retryAfterSeconds: RETRY_SECONDS,
      });
    }
    response.once('close', () => shares.give(client, 1));
    strangers.take(client, () => {
      if (!response.closed) next();
    });
  };
}
