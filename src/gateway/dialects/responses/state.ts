import type { Json } from '../../../lib/json.ts';

/** What the gateway knows of a response and its server does not, which stores nothing. */
export interface ResponseState {
  store: boolean;
  previous_response_id: string | null;
}

/** A response with what is true of it: the same object where the server says so, or nothing. */
export function withState(response: Json, state: ResponseState): Json {
  const wrong = Object.entries(state).filter(
    ([name, value]) => Object.hasOwn(response, name) && response[name] !== value,
  );
  return wrong.length === 0 ? response : { ...response, ...Object.fromEntries(wrong) };
}
