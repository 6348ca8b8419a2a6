import type { ReadStore } from '../kube/watch/store.ts';
import type { Clock } from '../lib/clock.ts';
import type { ApiKey } from '../resources/api-key.ts';
import type { Authenticator, Caller, Use } from './authenticator.ts';
import type { Tenants } from './tenants.ts';

/** Milliseconds after which at the latest an access that ends by the clock is noticed. */
const CHECK_MS = 1000;

/** Why an access has ended. The message is for the caller. */
export class AccessEnded extends Error {
  override readonly name = 'AccessEnded';
}

/** What a caller uses for longer than a moment: a call, a stream, a connection. */
export class Access {
  readonly caller: Caller;
  readonly #authenticator: Pick<Authenticator, 'refusal'>;
  readonly #ended = new AbortController();
  readonly #forget: (access: Access) => void;
  #use: Use;

  constructor(
    authenticator: Pick<Authenticator, 'refusal'>,
    { caller, use, forget }: { caller: Caller; use: Use; forget: (access: Access) => void },
  ) {
    this.#authenticator = authenticator;
    this.caller = caller;
    this.#use = use;
    this.#forget = forget;
  }

  /** Aborts with {@link AccessEnded} when the caller may no longer use it. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** It is a call of this model. */
  narrow(model: string): void {
    this.#use = { ...this.#use, model };
    this.check();
  }

  check(): void {
    const why = this.#authenticator.refusal(this.caller, this.#use);
    if (why !== undefined) this.#ended.abort(new AccessEnded(why));
  }

  /** The caller no longer uses it. */
  close(): void {
    this.#forget(this);
  }
}

export interface AccessWatchDeps {
  authenticator: Pick<Authenticator, 'refusal'>;
  apiKeys: Pick<ReadStore<ApiKey>, 'onChange'>;
  tenants: Pick<Tenants, 'onChange'>;
  clock: Pick<Clock, 'setTimeout'>;
}

/**
 * Ends what callers have under way when they lose the right to it: at the news that a key or a namespace has changed, and
 * within a second when a time is over. All ways in hold their accesses here.
 */
export class AccessWatch {
  readonly #deps: AccessWatchDeps;
  /** By namespace. */
  readonly #open = new Map<string, Set<Access>>();
  readonly #stop: readonly (() => void)[];
  #cancel: (() => void) | undefined;

  constructor(deps: AccessWatchDeps) {
    this.#deps = deps;
    this.#stop = [
      deps.apiKeys.onChange(({ before, after }) => this.#check((after ?? before)?.metadata.namespace ?? '')),
      deps.tenants.onChange((namespace) => this.#check(namespace)),
    ];
  }

  /** The access of a caller who may have lost it meanwhile: then its signal has aborted. */
  open(caller: Caller, use: Use): Access {
    const access = new Access(this.#deps.authenticator, { caller, use, forget: this.#forget });
    const { namespace } = caller;
    this.#open.set(namespace, (this.#open.get(namespace) ?? new Set()).add(access));
    access.check();
    this.#cancel ??= this.#deps.clock.setTimeout(this.#checkAll, CHECK_MS);
    return access;
  }

  close(): void {
    this.#cancel?.();
    for (const stop of this.#stop) stop();
  }

  readonly #forget = (access: Access): void => {
    const { namespace } = access.caller;
    const open = this.#open.get(namespace);
    open?.delete(access);
    if (open?.size === 0) this.#open.delete(namespace);
  };

  #check(namespace: string): void {
    for (const access of this.#open.get(namespace) ?? []) access.check();
  }

  readonly #checkAll = (): void => {
    this.#cancel = this.#open.size === 0 ? undefined : this.#deps.clock.setTimeout(this.#checkAll, CHECK_MS);
    for (const namespace of this.#open.keys()) this.#check(namespace);
  };
}
