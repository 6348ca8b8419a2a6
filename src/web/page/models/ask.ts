import { errorOf, fetchApi } from '../calls/call.ts';
import { eventsOf } from '../../../wire/event-stream.ts';
import { tenant } from '../state.ts';
import { APIS, type Dialect, type Piece, readEvent } from './dialects.ts';

export interface Question {
  dialect: Dialect;
  model: string;
  prompt: string;
}

interface Whole {
  error?: { message?: string };
}

/**
 * Asks a model, and calls `onPiece` with each piece of its answer as it comes. Ends with the answer; rejects with
 * `CallError`, and when the signal aborts.
 */
export async function ask(
  { dialect, model, prompt }: Question,
  onPiece: (piece: Piece) => void,
  signal: AbortSignal,
): Promise<void> {
  const { path, body } = APIS[dialect];
  const headers = { 'content-type': 'application/json', accept: 'text/event-stream' };
  const sent = JSON.stringify(body(model, prompt));
  const response = await fetchApi(tenant.value, path, { method: 'POST', headers, body: sent, signal });
  if (!response.ok || response.body === null) throw await errorOf(response);
  if (response.headers.get('content-type')?.includes('application/json')) {
    const whole = (await response.json()) as Whole;
    throw new Error(whole.error?.message ?? 'The model did not stream its answer.');
  }
  for await (const { data } of eventsOf(response.body)) {
    const piece = readEvent(dialect, data);
    if (piece.error !== undefined) throw new Error(piece.error);
    onPiece(piece);
  }
}
