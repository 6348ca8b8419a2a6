import { Registry } from 'prom-client';
import { type RunningControllers, startControllers } from '../../../src/controllers/start.ts';
import { DEVICE_CACHES } from '../../../src/caches/table.ts';
import { CONTROLLER_CACHES } from '../../../src/controllers/stores.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { ClockCheck, type DatedAnswer } from '../../../src/runtime/clock-check.ts';
import { OWN } from '../own.ts';
import { BerthProcess, type ProcessDeps } from './process.ts';

/** A replica of the controller role, as it ships. */
export class ControllerProcess extends BerthProcess {
  /** Resolves when its caches are there. */
  readonly started: Promise<RunningControllers>;

  constructor(deps: ProcessDeps) {
    super(deps, { texts: false });
    const { clock } = this;
    const clockCheck = new ClockCheck(clock);
    const onDate = (answer: DatedAnswer): void => clockCheck.saw(answer);
    this.started = startControllers({
      client: this.client,
      leaseClient: createKubeClient(this.link.connection, { clock, onDate, random: () => Math.random() }),
      clockCheck,
      stores: this.caches.pick(CONTROLLER_CACHES),
      devices: deps.api.servesDevices ? this.caches.pick(DEVICE_CACHES) : undefined,
      registry: new Registry(),
      log: this.log,
      clock,
      hearsSessions: true,
      checkLogin: async () => {
        await clock.sleep(50);
        return true;
      },
      config: {
        namespace: OWN,
        defaultImage: 'debian:12',
        toolsImage: 'tools',
        imagePullSecrets: [],
        imagePullPolicy: 'IfNotPresent',
        ssh: { host: 'ssh.test', port: 2222 },
        claimOnPod: deps.claimOnPod,
      },
    });
  }

  /** As at an upgrade. */
  async stop(): Promise<void> {
    await (await this.started).stop();
    this.watching.abort();
    await this.caches.ended();
    this.kill();
  }
}
