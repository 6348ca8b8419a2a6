import { type Logger, pino } from 'pino';
import { Caches } from '../../../src/caches/caches.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { Link } from '../api/network.ts';
import type { ApiServer } from '../api/server.ts';
import type { Chance } from '../clock/chance.ts';
import { ProcessClock } from '../clock/process-clock.ts';
import type { VirtualTime } from '../clock/virtual-time.ts';
import { OWN } from '../own.ts';

export interface ProcessDeps {
  api: ApiServer;
  time: VirtualTime;
  chance: Chance;
  claimOnPod: boolean;
  onStray: (what: string) => void;
}

const LEVEL = process.env['BERTH_TEST_LOG'];

function say(): void {
  // Nobody listens.
}

/** Says nothing, and makes no child for each key: that would be a tenth of the time of a world. */
const SILENT: Logger = {
  level: 'silent',
  isLevelEnabled: () => false,
  ...Object.fromEntries(['trace', 'debug', 'info', 'warn', 'error', 'fatal'].map((level) => [level, say])),
  child: () => SILENT,
} as unknown as Logger;

/** What every process of Berth has: a clock, a way to the API server, and the caches that ship. */
export class BerthProcess {
  readonly clock: ProcessClock;
  readonly link: Link;
  readonly client: KubeClient;
  readonly caches: Caches;
  readonly log: Logger;
  readonly watching = new AbortController();

  constructor({ api, time, chance, claimOnPod, onStray }: ProcessDeps, reads: { texts: boolean }) {
    this.clock = new ProcessClock(time);
    this.link = new Link({ api, time, chance, clock: this.clock, onStray });
    this.client = createKubeClient(this.link.connection, { clock: this.clock, random: () => Math.random() });
    this.log = LEVEL === undefined ? SILENT : pino({ level: LEVEL });
    const deps = { client: this.client, namespace: OWN, clock: this.clock, log: this.log, reads, claimOnPod };
    this.caches = new Caches(deps, this.watching.signal);
  }

  /** It is gone at once: what it had sent still arrives. */
  kill(): void {
    this.clock.kill();
    this.link.sever();
  }
}
