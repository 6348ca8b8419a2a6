import { countStructure } from '../../lib/json-structure.ts';
import { whoCanChange } from '../../resources/tenants/who-can-change.ts';
import type { ClientError } from '../dialects/index.ts';
import type { BodyHold } from '../limits/body-shares.ts';

/** A parsed object, array or value takes 20 to 100 bytes. */
const PIECE_BYTES = 64;

/** The tenant's share of bytes, or that of all, has no room for more of an answer. */
export class AnswerShareError extends Error {
  override readonly name = 'AnswerShareError';
  readonly client: ClientError;

  constructor(client: ClientError) {
    super(client.message);
    this.client = client;
  }
}

/**
 * Holds what the gateway keeps of an answer, in place of what it kept of it before.
 * @throws AnswerShareError
 */
export function keepAnswer(hold: BodyHold, bytes: number): void {
  const error = noRoom(hold, hold.keep(bytes));
  if (error !== undefined) throw new AnswerShareError(error);
}

/**
 * Holds what a whole answer takes that is about to be parsed.
 * @throws AnswerShareError
 */
export function keepParsed(hold: BodyHold, json: Buffer): void {
  keepAnswer(hold, json.length + PIECE_BYTES * countStructure(json, Infinity));
}

/** What a client gets whose answer has no room; undefined when it has. */
export function noRoom({ most }: BodyHold, result: ReturnType<BodyHold['keep']>): ClientError | undefined {
  if (result === 'taken') return undefined;
  if (result === 'all-full')
    return {
      status: 503,
      message: 'The gateway holds too many answers and requests at the moment, and cut this answer. Try again shortly.',
    };
  return {
    status: 429,
    message: `The answer was cut: the calls of this tenant together hold ${most / 2 ** 20} MiB of request bodies and answers, which is its share. Read answers as they come, and have fewer calls under way. ${whoCanChange('http.bodyMib')}`,
    code: 'rate_limit_exceeded',
  };
}
