import { useState } from 'preact/hooks';
import { NO_REFUSAL, type Refusal, refusalOf } from '../calls/refusal.ts';

/** Why the form was refused when it was last sent, and what sends it: by an action that rejects when it is refused. */
export function useRefusal(): { refusal: Refusal; send: (action: () => Promise<void>) => Promise<void> } {
  const [refusal, setRefusal] = useState(NO_REFUSAL);
  async function send(action: () => Promise<void>): Promise<void> {
    setRefusal(NO_REFUSAL);
    try {
      await action();
    } catch (error) {
      setRefusal(refusalOf(error));
    }
  }
  return { refusal, send };
}
