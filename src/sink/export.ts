import type { KubeClient } from '../kube/client/client.ts';
import { everyObject } from '../kube/client/every.ts';
import type { KubeObject } from '../kube/types.ts';
import { endedFrom, monthOf } from '../ledger/month.ts';
import type { Clock } from '../lib/clock.ts';
import { GPU_INSTANCES } from '../resources/instances/gpu-instance.ts';
import { TOKEN_RECORDS } from '../resources/token-record.ts';
import { USAGE_RECORDS } from '../resources/usage-record.ts';
import type { Charge } from './columns.ts';
import type { Sink } from './postgres.ts';
import { Tally } from './tally.ts';
import { chargesOfTokens, isFinal } from './token-charges.ts';
import { chargesOfInstance, chargesOfRecord } from './usage-charges.ts';

/** Charges of one statement. */
const BATCH = 500;

export interface ExportDependencies {
  client: Pick<KubeClient, 'list'>;
  sink: Sink;
  /** The API server's, once it has answered: with a clock ahead of it charges would be copied that still grow. */
  clock: Pick<Clock, 'now'>;
}

/** What a run read, and how it compares. */
export interface Exported {
  tally: Tally;
  /** First month whose records were asked for by their label; undefined for all. */
  from: string | undefined;
  /** `growing`: token records that are not final, and were left. */
  read: { instances: number; usageRecords: number; tokenRecords: number; growing: number };
}

/** Passes charges on to the sink in batches, so that memory is bounded. */
class Writer {
  readonly tally = new Tally();
  readonly #sink: Sink;
  readonly #waiting: Charge[] = [];

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  /** Adds what `make` makes of an object. An object that cannot be read is counted, and stops no other. */
  async add(object: KubeObject, make: () => readonly Charge[]): Promise<void> {
    try {
      this.#waiting.push(...make());
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.tally.addUnreadable(`${object.metadata.namespace}/${object.metadata.name}`);
    }
    while (this.#waiting.length >= BATCH) await this.#send();
  }

  async flush(): Promise<void> {
    if (this.#waiting.length > 0) await this.#send();
  }

  async #send(): Promise<void> {
    const charges = this.#waiting.splice(0, BATCH);
    const { added, stored } = await this.#sink.write(charges);
    this.tally.added += added;
    for (const charge of charges) this.tally.add(charge, stored.get(charge.row.x_ChargeId));
  }
}

/**
 * The first moment whose records a run asks for: the month before that of the last complete run, because an ending may be
 * decided for a time before. A clock that was ahead then must not leave out what comes now.
 */
function firstMoment(last: number | undefined, now: number): number | undefined {
  return last === undefined ? undefined : monthOf(monthOf(Math.min(last, now)).from - 1).from;
}

/**
 * Brings every ended charge of the cluster to the sink, and compares. It may end at any point, run again, and run twice at
 * once: nothing stands twice, and nothing changes. The instances come first: a record is written before its instance
 * forgets what is in it, so nothing is missing then.
 */
export async function exportUsage({ client, sink, clock }: ExportDependencies, all: boolean): Promise<Exported> {
  const last = all ? undefined : await sink.completeAt();
  const writer = new Writer(sink);
  const read = { instances: 0, usageRecords: 0, tokenRecords: 0, growing: 0 };
  /** Charges of instances that are there: a record may have the same. */
  const seen = new Set<string>();
  for await (const instance of everyObject(client, GPU_INSTANCES)) {
    read.instances += 1;
    await writer.add(instance, () => {
      const charges = chargesOfInstance(instance);
      for (const { row } of charges) seen.add(row.x_ChargeId);
      return charges;
    });
  }
  const now = clock.now();
  const first = firstMoment(last, now);
  // Records without the label are few: those of operators, and of earlier releases.
  const labelSelector = first === undefined ? {} : { labelSelector: endedFrom(first) };
  for await (const record of everyObject(client, USAGE_RECORDS, labelSelector)) {
    read.usageRecords += 1;
    await writer.add(record, () => chargesOfRecord(record).filter(({ row }) => !seen.has(row.x_ChargeId)));
  }
  for await (const record of everyObject(client, TOKEN_RECORDS, labelSelector)) {
    const isDone = isFinal(record, now);
    read[isDone ? 'tokenRecords' : 'growing'] += 1;
    if (!isDone) continue;
    await writer.add(record, () => chargesOfTokens(record));
  }
  await writer.flush();
  if (writer.tally.isSound()) await sink.complete(now);
  return { tally: writer.tally, from: first === undefined ? undefined : monthOf(first).name, read };
}
