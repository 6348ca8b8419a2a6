/** Lets each owner have one work under way: the others of it wait, each for the one before. */
export class InTurn {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<T>(owner: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(owner);
    const turn = before === undefined ? work() : before.then(work, work);
    this.#last.set(owner, turn);
    try {
      return await turn;
    } finally {
      if (this.#last.get(owner) === turn) this.#last.delete(owner);
    }
  }
}
