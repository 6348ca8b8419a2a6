/** What owners have and did not give back, and which pods this run ended itself. */
export class Accepted {
  /** uid -> name. */
  readonly names = new Map<string, string>();
  /** uids of all that were ever accepted. */
  readonly ever = new Set<string>();
  /** uids of those that nobody may preempt. */
  readonly steady = new Set<string>();
  /** uids of pods that a fault of this run ends. Each is here before its end is asked for. */
  readonly disturbed = new Set<string>();

  /** An instance was accepted. Interruptible ones may end for others. */
  add(uid: string, name: string, { interruptible = false } = {}): void {
    this.names.set(uid, name);
    this.ever.add(uid);
    if (!interruptible) this.steady.add(uid);
  }

  /** Its owner is about to delete it. */
  letGo(uid: string): void {
    this.names.delete(uid);
    this.steady.delete(uid);
  }
}
