import type { Running } from './processes.ts';

/** What is measured: a gateway in front of the mock engine, or the engine alone. */
export interface Target {
  name: string;
  port: number;
  headers: Record<string, string>;
  chatPath: string;
  /** Absent: it has no messages endpoint over a chat engine. */
  messagesPath?: string | undefined;
  running: Running;
}
