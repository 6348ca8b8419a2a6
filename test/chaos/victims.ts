/** The end of a start of an interruptible instance, for an on-demand one. */
export interface SeenPreemption {
  victim: string;
  /** uid of the on-demand instance. */
  by: string;
  /** Number of the victim's start. */
  start: number;
}

/** What is known of who asked for the places of others. */
export interface SeenRequest {
  name: string;
  /** Starts that got a place. */
  starts: number;
  /** Whether it has run. */
  ran: boolean;
  /** Whether it waits for a place now. */
  waits: boolean;
}

/** Nobody ends twice for one request, and nobody for a request that never starts. */
export function judgeVictims(
  preemptions: readonly SeenPreemption[],
  requests: ReadonlyMap<string, SeenRequest>,
): string[] {
  const found = new Set<string>();
  for (const [, all] of Map.groupBy(preemptions, ({ victim, by }) => `${victim} ${by}`)) {
    const { victim = '', by = '' } = all[0] ?? {};
    const request = requests.get(by);
    const times = new Set(all.map(({ start }) => start)).size;
    if (request === undefined || (!request.ran && !request.waits))
      found.add(`${victim} was ended for ${request?.name ?? by}, which never ran`);
    // One that lost its place asks once more.
    const asked = (request?.starts ?? 1) + (request?.waits === true ? 1 : 0);
    if (times > asked)
      found.add(`${victim} was ended ${times} times for ${request?.name ?? by}, which asked ${asked} times`);
  }
  return [...found];
}
