import type { ReadStore } from '../kube/watch/store.ts';
import type { Clock } from '../lib/clock.ts';
import type { ApiKey } from '../resources/api-key.ts';
import { type Authenticator, type Caller, SIGN_IN_OVER, type Use } from './authenticator.ts';
import type { Tenants } from './tenants.ts';

/** Milliseconds after which at the latest an access that ends by the clock is noticed. */
const CHECK_MS = 1000;
/** Milliseconds between two questions whether a person still has a role, so that what is taken away ends within a second. */
const VOUCH_MS = 500;

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

  /** What a person uses, so that all who use the same are asked about once. */
  get vouchedAs(): string {
    const { keyId, namespace } = this.caller;
    return JSON.stringify([keyId, namespace, this.#use.scope]);
  }

  /** Asks whether the person still may, as the cluster says now. Undefined while nobody can tell. */
  vouch(): Promise<number | 'refused' | undefined> {
    const asked = this.caller.vouch?.(this.#use.scope) ?? Promise.resolve(undefined);
    return asked.then(
      (until) => until ?? 'refused',
      () => undefined,
    );
  }

  vouched(answer: number | 'refused' | undefined): void {
    if (answer === 'refused') this.#ended.abort(new AccessEnded(SIGN_IN_OVER));
    else if (answer !== undefined && this.#use.isOneCall) this.caller.vouchedUntil = answer;
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
 * within a second when a time is over or a person has lost the role. All ways in hold their accesses here.
 */
export class AccessWatch {
  readonly #deps: AccessWatchDeps;
  /** By namespace. */
  readonly #open = new Map<string, Set<Access>>();
  readonly #stop: readonly (() => void)[];
  #cancel: (() => void) | undefined;
  /** Those of people. */
  readonly #ofPeople = new Set<Access>();
  /** What is being asked about. */
  readonly #vouching = new Set<string>();
  #cancelVouching: (() => void) | undefined;

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
    const { clock } = this.#deps;
    this.#cancel ??= clock.setTimeout(this.#checkAll, CHECK_MS);
    if (caller.vouch === undefined) return access;
    this.#ofPeople.add(access);
    this.#cancelVouching ??= clock.setTimeout(this.#vouchForAll, VOUCH_MS);
    return access;
  }

  close(): void {
    this.#cancel?.();
    this.#cancelVouching?.();
    for (const stop of this.#stop) stop();
  }

  readonly #forget = (access: Access): void => {
    const { namespace } = access.caller;
    const open = this.#open.get(namespace);
    open?.delete(access);
    this.#ofPeople.delete(access);
    if (open?.size === 0) this.#open.delete(namespace);
  };

  #check(namespace: string): void {
    for (const access of this.#open.get(namespace) ?? []) access.check();
  }

  readonly #checkAll = (): void => {
    this.#cancel = this.#open.size === 0 ? undefined : this.#deps.clock.setTimeout(this.#checkAll, CHECK_MS);
    for (const namespace of this.#open.keys()) this.#check(namespace);
  };

  readonly #vouchForAll = (): void => {
    const isIdle = this.#ofPeople.size === 0;
    this.#cancelVouching = isIdle ? undefined : this.#deps.clock.setTimeout(this.#vouchForAll, VOUCH_MS);
    const groups = Map.groupBy(this.#ofPeople, (access) => access.vouchedAs);
    for (const [name, accesses] of groups) if (!this.#vouching.has(name)) void this.#vouchFor(name, accesses);
  };

  /** The newest has the newest token. */
  async #vouchFor(name: string, accesses: readonly Access[]): Promise<void> {
    this.#vouching.add(name);
    const answer = await accesses.at(-1)?.vouch();
    this.#vouching.delete(name);
    for (const access of accesses) access.vouched(answer);
  }
}
