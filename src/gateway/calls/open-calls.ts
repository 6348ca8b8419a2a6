import type { Access, AccessEnded, AccessWatch } from '../../access/access-watch.ts';
import type { Principal } from '../../access/principal.ts';
import { DialectError } from '../dialects/index.ts';
import type { ClientWriter } from './client-writer.ts';

/** A call under way, whose signal aborts when its caller may no longer make it. */
export type OpenCall = Pick<Access, 'signal' | 'narrow' | 'close'>;

/** The calls of this process that are under way. Each ends when its caller loses access, and all when the process stops. */
export class OpenCalls {
  readonly #access: Pick<AccessWatch, 'open'>;
  readonly #clients = new Set<ClientWriter>();

  constructor(access: Pick<AccessWatch, 'open'>) {
    this.#access = access;
  }

  /** From now on the call of the client ends with its caller's access. */
  begin(client: ClientWriter, principal: Principal): OpenCall {
    const access = this.#access.open(principal, { scope: 'models', isOneCall: true });
    const { signal } = access;
    const cut = (): void => client.cut(accessEnded(signal.reason as AccessEnded));
    if (signal.aborted) cut();
    else signal.addEventListener('abort', cut);
    this.#clients.add(client);
    return {
      signal,
      narrow: (model) => access.narrow(model),
      close: () => {
        access.close();
        this.#clients.delete(client);
      },
    };
  }

  /** Tells every client that its call ends here. */
  endAll(): void {
    for (const client of this.#clients) client.cut(stopping());
  }
}

function accessEnded({ message }: AccessEnded): DialectError {
  return new DialectError({ status: 401, message: `The call was ended. ${message}`, code: 'invalid_api_key' });
}

function stopping(): DialectError {
  return new DialectError({
    status: 503,
    message:
      'Service unavailable: this replica of the gateway stops, and the answer took longer than the time that calls get to end. Send the call again: another replica answers.',
  });
}
