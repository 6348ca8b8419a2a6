import { parseArgs } from 'node:util';
import { systemClock } from '../lib/clock.ts';
import { exportUsage } from '../sink/export.ts';
import { Postgres } from '../sink/postgres.ts';
import { printExport } from '../sink/print.ts';
import { withClient } from './with-client.ts';

/**
 * `berth export-usage`: brings ended charges to the database of $BERTH_SINK_URL, and compares both sides. Reads with the
 * rights of the kubeconfig or the pod. Throws SinkError and the client's errors.
 */
export async function exportUsageCommand(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<{ text: string; code: 0 | 1 }> {
  const { values } = parseArgs({ args: [...args], options: { all: { type: 'boolean', default: false } } });
  const sink = await Postgres.open(env['BERTH_SINK_URL']);
  try {
    return await withClient(env, async (client, { clock }) => {
      // Of two clocks the one that is behind: what is copied too late comes with the next run, what is copied too early stays.
      const behind = { now: () => Math.min(systemClock().now(), clock.now()) };
      const exported = await exportUsage({ client, sink, clock: behind }, values.all);
      return { text: printExport(exported), code: exported.tally.isSound() ? 0 : 1 };
    });
  } finally {
    await sink.close();
  }
}
