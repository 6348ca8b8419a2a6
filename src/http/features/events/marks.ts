import { hash } from 'node:crypto';
import type { HistoryEntry, InstanceHistorySpec } from '../../../resources/instance-history.ts';

/** Characters of a mark. */
const MARK = 5;
/** Marks in an id, which has at most 100 characters. */
const MARKS = 15;
/** Milliseconds: replicas see the same state at times that differ by less. */
const OVERLAP_MS = 30_000;

const ID = /^(\d{1,15})\.((?:[\w-]{5}){0,15})$/;

/** Names an event of a history, and how often it has happened, in the same way on every replica. */
function markOf(uid: string, { reason, start, count }: HistoryEntry): string {
  return hash('sha256', `${uid} ${reason} ${start} ${count}`, 'base64url').slice(0, MARK);
}

function timeOf({ at, lastAt }: HistoryEntry): number {
  return Date.parse(lastAt ?? at);
}

/** An event that a client has not, and the id to send with it. */
export interface NewEntry {
  id: string;
  entry: HistoryEntry;
}

/**
 * Which events of a history a client has. An id is the time of the newest one that was sent, and marks of the last ones:
 * what comes at another replica is found new by its mark, not by its time alone, which replicas may see differently.
 */
export class SentMarks {
  #sent: string[] = [];
  /** Milliseconds: the newest event that was sent. */
  #newest = 0;

  /** Takes what an id says that the client has. Any other text means nothing: the client then gets everything. */
  resume(id: string | undefined, { instanceUid, entries }: InstanceHistorySpec): void {
    const [, time, marks = ''] = ID.exec(id ?? '') ?? [];
    if (time === undefined) return;
    this.#newest = Number(time);
    const old = entries.filter((entry) => timeOf(entry) < this.#newest - OVERLAP_MS);
    this.#sent = [...old.map((entry) => markOf(instanceUid, entry)), ...(marks.match(/.{5}/g) ?? [])];
  }

  /** The events that the client has not, oldest first. They count as sent. */
  take({ instanceUid, entries }: InstanceHistorySpec): NewEntry[] {
    const marked = entries.map((entry) => ({ entry, mark: markOf(instanceUid, entry) }));
    const fresh = marked.filter(({ mark }) => !this.#sent.includes(mark));
    const found = fresh.map(({ entry, mark }) => {
      this.#sent.push(mark);
      this.#newest = Math.max(this.#newest, timeOf(entry));
      return { id: `${this.#newest}.${this.#sent.slice(-MARKS).join('')}`, entry };
    });
    // What gave way in the history is asked for no more.
    const kept = new Set(marked.map(({ mark }) => mark));
    this.#sent = this.#sent.filter((mark) => kept.has(mark));
    return found;
  }
}
