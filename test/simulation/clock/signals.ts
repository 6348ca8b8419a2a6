/**
 * Signals that follow others, as AbortSignal.any makes them, until the answer is called. Node keeps one of its own for as
 * long as it has a listener, and with it the caches of a process of the world that died: a year has two thousand.
 */
export function followsSignals(): () => void {
  const before = Object.getOwnPropertyDescriptor(AbortSignal, 'any');
  const followers = new WeakMap<AbortSignal, Set<AbortController>>();
  const followersOf = (signal: AbortSignal): Set<AbortController> => {
    const known = followers.get(signal);
    if (known !== undefined) return known;
    const own = new Set<AbortController>();
    followers.set(signal, own);
    const tell = (): void => {
      for (const follower of own) follower.abort(signal.reason);
    };
    signal.addEventListener('abort', tell, { once: true });
    return own;
  };
  AbortSignal.any = (signals: Iterable<AbortSignal>): AbortSignal => {
    const all = [...signals];
    const ended = all.find(({ aborted }) => aborted);
    if (ended !== undefined) return AbortSignal.abort(ended.reason);
    const follower = new AbortController();
    const sets = all.map(followersOf);
    for (const set of sets) set.add(follower);
    const leave = (): void => {
      for (const set of sets) set.delete(follower);
    };
    follower.signal.addEventListener('abort', leave, { once: true });
    return follower.signal;
  };
  return () => {
    if (before !== undefined) Object.defineProperty(AbortSignal, 'any', before);
  };
}
