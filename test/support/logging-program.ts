import { Registry } from 'prom-client';
import { createLog } from '../../src/roles/log.ts';

// Logs as a role does, and ends in the way that the test asks for: logging-program.ts LINES END

const [lines = '0', end = 'return'] = process.argv.slice(2);
const registry = new Registry();
const log = createLog({ level: 'info', role: 'test', registry });
const text = 'x'.repeat(200);

function logAll(): void {
  for (let index = 0; index < Number(lines); index += 1) log.info({ index, text }, 'Line');
}

logAll();
if (end === 'throw') throw new Error('Nothing catches this.');
if (end === 'wait') {
  // Until the test has seen what it wants, and closes stdin.
  process.stdin.resume().once('end', () => {
    log.info('Last');
    void registry.getSingleMetricAsString('berth_log_lines_dropped_total').then((all) => process.stderr.write(all));
  });
}
