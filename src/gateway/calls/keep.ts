import type { Logger } from 'pino';
import { parseInput } from '../dialects/index.ts';
import type { ResponseStore } from '../state/response-store.ts';
import type { Call } from './call.ts';
import type { AnswerReceiver } from './stream-receiver.ts';

export interface KeepDeps {
  store: ResponseStore;
  logger: Logger;
}

/** Stores the complete answer of a call whose answer is kept. Never rejects. */
export async function keepAnswer({ store, logger }: KeepDeps, call: Call, answer: AnswerReceiver): Promise<void> {
  const { inspection, principal, body, references } = call;
  if (answer.responseId === undefined) return;
  const previous = inspection.previousResponseId;
  try {
    await store.put(principal.keyId, answer.responseId, {
      items: [...parseInput(body.input, references), ...answer.items],
      response: answer.response,
      ...(previous !== undefined && { previous }),
    });
  } catch (err) {
    // The answer itself is good: its reader gets it, and cannot continue it by its id.
    logger.warn({ err }, 'an answer was not stored');
  }
}
