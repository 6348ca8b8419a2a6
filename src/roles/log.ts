import { pino, type Logger } from 'pino';
import { Counter, type Registry } from 'prom-client';

/** Fields of logged objects that may hold secrets. */
const REDACTED = [
  'req.headers.authorization',
  'req.headers["x-api-key"]',
  'req.headers["api-key"]',
  'req.headers.cookie',
  'headers.authorization',
];

/**
 * Bytes that go out in one write, without waiting for the next flush: the most that sonic-boom takes. A write for each line
 * would cost a tenth of a model call.
 */
const BATCH_BYTES = 16_383;
/** Milliseconds that a line waits at most. A process that is killed loses no older ones. */
const FLUSH_MS = 100;
/** Bytes that wait for a reader that has stopped reading. Lines beyond them are dropped and counted. */
const WAITING_BYTES = 4 * 1024 * 1024;

/**
 * The log of a role, to stdout. Lines are written in the background and in batches: a slow reader delays no answer. The
 * end of the process writes the rest, also after an error that nothing caught. SIGKILL and a crash of Node itself lose
 * what was logged in the last 100 ms.
 */
export function createLog({ level, role, registry }: { level: string; role: string; registry: Registry }): Logger {
  const dropped = new Counter({
    name: 'berth_log_lines_dropped_total',
    help: 'Log lines that were dropped because nothing read the log.',
    registers: [registry],
  });
  const output = pino.destination({
    dest: process.stdout.fd,
    sync: false,
    minLength: BATCH_BYTES,
    maxLength: WAITING_BYTES,
    periodicFlush: FLUSH_MS,
  });
  output.on('drop', () => dropped.inc());
  return pino({ level, base: { role }, redact: REDACTED }, output);
}
