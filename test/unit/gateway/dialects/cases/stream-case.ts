import type { Dialect } from '../../../../../src/gateway/dialects/index.ts';

/** A stream as a server writes it, or the test suite of a client has it, and what a client must read of it. */
export interface StreamCase {
  /** Where it was seen: repository, file and test, or the thread. */
  source: string;
  from: Dialect;
  bytes: string;
  text?: string;
  reasoning?: string;
  /** Without arguments where the server sends none: dialects differ in how they say so. */
  calls?: readonly { name: string; arguments?: string }[];
  /** Why the answer ended, in the words of each dialect. */
  stop?: Readonly<Record<Dialect, string>>;
  /** The stream fails: part of the error for the client. */
  error?: { status?: number; code?: string };
}
