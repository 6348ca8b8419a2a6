import type { ExitStatus } from '../session/exit-status.ts';
import type { Terminal } from '../session/session-script.ts';

const MOST_CELLS = 1000;
const TYPE = 'xterm-256color';

type Size = Pick<Terminal, 'columns' | 'rows'>;

function isSide(cells: unknown): cells is number {
  return typeof cells === 'number' && Number.isInteger(cells) && cells > 0 && cells <= MOST_CELLS;
}

/** The terminal of a request's query, 80 by 24 where it names no size that a screen can have. */
export function terminalOf(query: URLSearchParams): Terminal {
  const [columns, rows] = [Number(query.get('columns')), Number(query.get('rows'))];
  const modes = ['iutf8'];
  return { term: TYPE, modes, ...(isSide(columns) && isSide(rows) ? { columns, rows } : { columns: 80, rows: 24 }) };
}

/** The size in a frame; undefined when the client sent something else. */
export function sizeOf(bytes: Buffer): Size | undefined {
  try {
    const { Width: columns, Height: rows } = JSON.parse(bytes.toString()) as { Width?: unknown; Height?: unknown };
    return isSide(columns) && isSide(rows) ? { columns, rows } : undefined;
  } catch {
    return undefined;
  }
}

/** The number in a frame; undefined when the client sent something else. */
export function countOf(bytes: Buffer): number | undefined {
  const text = bytes.toString('latin1');
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** The last frame, as the kubelet writes it: an exit status, or the reason for which there is none. */
export function statusFrame({ code, message }: ExitStatus): Buffer {
  const base = { kind: 'Status', apiVersion: 'v1', metadata: {} };
  if (message !== undefined) return Buffer.from(JSON.stringify({ ...base, status: 'Failure', message }));
  if (code === 0) return Buffer.from(JSON.stringify({ ...base, status: 'Success' }));
  const details = { causes: [{ reason: 'ExitCode', message: String(code) }] };
  const said = `The shell ended with ${code}.`;
  return Buffer.from(JSON.stringify({ ...base, status: 'Failure', reason: 'NonZeroExitCode', message: said, details }));
}
