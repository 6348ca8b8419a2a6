import { call, type Way } from './calls.ts';

// A tenant who offers calls without end, and waits for no Retry-After: `flooder.ts PER_SECOND`, the way as JSON in $WAY.
// It is ended by its parent. It says how many calls it has made, and how many of each status came back, on SIGTERM.

const TICK_MS = 10;
/** Sockets. What is offered beyond them is not sent, and counted. */
const MOST_OPEN = 8000;

const way = JSON.parse(process.env['WAY'] ?? '') as Way;
const perTick = (Number(process.argv[2]) * TICK_MS) / 1000;
const statuses: Record<string, number> = {};
const began = performance.now();
let [offered, open] = [0, 0];

function count(status: string): void {
  statuses[status] = (statuses[status] ?? 0) + 1;
}

async function send(): Promise<void> {
  const status = await call(way);
  open -= 1;
  count(String(status));
}

setInterval(() => {
  const due = Math.floor(((performance.now() - began) / TICK_MS) * perTick);
  for (; offered < due; offered += 1) {
    if (open >= MOST_OPEN) {
      count('unsent');
      continue;
    }
    open += 1;
    void send();
  }
}, TICK_MS);
process.once('SIGTERM', () => {
  const seconds = (performance.now() - began) / 1000;
  console.log(JSON.stringify({ perSecond: Math.round(offered / seconds), open, statuses }));
  process.exit();
});
