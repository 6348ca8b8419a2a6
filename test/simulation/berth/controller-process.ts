import { Registry } from 'prom-client';
import { type RunningControllers, startControllers } from '../../../src/controllers/start.ts';
import { CONTROLLER_CACHES } from '../../../src/controllers/stores.ts';
import { BerthProcess, OWN, type ProcessDeps } from './process.ts';

/** A replica of the controller role, as it ships. */
export class ControllerProcess extends BerthProcess {
  /** Resolves when its caches are there. */
  readonly started: Promise<RunningControllers>;

  constructor(deps: ProcessDeps) {
    super(deps, { texts: false });
    this.started = startControllers({
      client: this.client,
      leaseClient: this.client,
      stores: this.caches.pick(CONTROLLER_CACHES),
      registry: new Registry(),
      log: this.log,
      clock: this.clock,
      hearsSessions: true,
      checkLogin: async () => {
        await this.clock.sleep(50);
        return true;
      },
      config: {
        namespace: OWN,
        defaultImage: 'debian:12',
        toolsImage: 'tools',
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
