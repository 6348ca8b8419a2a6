import type { KubeClient } from '../../src/kube/client/client.ts';

export interface RecordedCall {
  verb: string;
  arguments: unknown[];
}

/**
 * A client that notes each call and answers with what the call would store: the object sent, or `answers` in order
 * where the test gives some (an Error is thrown).
 */
export function recordingClient(answers: unknown[] = []) {
  const calls: RecordedCall[] = [];
  function note(verb: string) {
    return (...args: unknown[]): Promise<never> => {
      calls.push({ verb, arguments: args });
      const answer = answers.length > 0 ? answers.shift() : args[1];
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer as never);
    };
  }
  const client: KubeClient = {
    get: note('get'),
    list: note('list'),
    create: note('create'),
    replace: note('replace'),
    apply: note('apply'),
    patch: note('patch'),
    delete: note('delete'),
    stream: note('stream'),
    raw: note('raw'),
    close: () => Promise.resolve(),
  };
  return { client, calls };
}
