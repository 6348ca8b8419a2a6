import { type Exported, exportUsage } from '../../../src/sink/export.ts';
import type { Sink } from '../../../src/sink/postgres.ts';
import { BerthProcess, type ProcessDeps } from './process.ts';

/** One run of `berth export-usage`, behind its connection to the database. */
export class ExportProcess extends BerthProcess {
  constructor(deps: ProcessDeps) {
    super(deps, { texts: true });
  }

  /** Rejects as the command does; a run that is killed never settles. */
  run(sink: Sink, all: boolean): Promise<Exported> {
    return exportUsage({ client: this.client, sink, clock: this.clock }, all);
  }
}
