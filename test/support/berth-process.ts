import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freePorts } from '../../tools/lib/free-ports.ts';
import { BUSYBOX_IMAGE } from '../../tools/cluster/built/real-node.ts';
import { TOOLS_IMAGE } from '../../tools/lib/images/tools-image.ts';
import { waitFor } from './wait-for.ts';

/** Roles that tell about their health on the metrics port alone. */
const HAS_NO_API = new Set(['controller', 'dashboard', 'ssh', 'notifier']);
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

export interface BerthProcess extends AsyncDisposable {
  /** Scheme, host and port of the HTTP interface. */
  url: string;
  metricsUrl: string;
  sshPort: number;
  child: ChildProcess;
  /** Everything it has logged so far. */
  log(): string;
}

interface StartOptions {
  env?: Record<string, string>;
  /** What Node is given before the role; the sources by default, as with `npm start`. */
  program?: readonly string[];
  /** Nobody reads its log. */
  isUnread?: boolean;
}

const running = new Set<ChildProcess>();
// What a setup leaves that failed half-way: other files would meet its leader.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
// So Vitest ends the process of a test file.
process.once('SIGTERM', () => process.exit());

/** A Berth server in a process of its own, ready. */
export async function startBerth(
  kubeconfig: string,
  role = 'all',
  namespace = 'berth-system',
  { env = {}, program = [MAIN], isUnread = false }: StartOptions = {},
): Promise<BerthProcess> {
  const [http = 0, metrics = 0, ssh = 0] = await freePorts(3);
  const child = spawn(process.execPath, [...program, role], {
    env: {
      ...process.env,
      KUBECONFIG: kubeconfig,
      BERTH_NAMESPACE: namespace,
      BERTH_HTTP_ADDR: `127.0.0.1:${http}`,
      BERTH_METRICS_ADDR: `127.0.0.1:${metrics}`,
      BERTH_SSH_ADDR: `127.0.0.1:${ssh}`,
      BERTH_TOOLS_IMAGE: TOOLS_IMAGE,
      BERTH_IMAGE_PULL_POLICY: 'IfNotPresent',
      BERTH_DEFAULT_IMAGE: BUSYBOX_IMAGE,
      BERTH_CLAIM_ON_POD: 'true',
      ...env,
    },
    stdio: ['ignore', isUnread ? 'ignore' : 'pipe', 'pipe'],
  });
  let log = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => (log += text));
  }
  const exited = once(child, 'exit');
  running.add(child);
  child.once('exit', () => running.delete(child));
  const metricsUrl = `http://127.0.0.1:${metrics}`;
  const url = `http://127.0.0.1:${http}`;
  await waitFor(
    `the ${role} role to be ready`,
    async () => {
      if (child.exitCode !== null) throw new Error(`The ${role} role ended by itself:\n${log}`);
      const ready = (base: string) =>
        fetch(`${base}/readyz`).then(
          ({ ok }) => ok,
          () => false,
        );
      return (await ready(metricsUrl)) && (HAS_NO_API.has(role) || (await ready(url)));
    },
    120_000,
  );
  return {
    url,
    metricsUrl,
    sshPort: ssh,
    child,
    log: () => log,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGTERM');
        await exited;
      }
      // Of Node itself, such as for listeners that pile up.
      const [warning] = /^\(node:\d+\) (?!ExperimentalWarning).*/m.exec(log) ?? [];
      if (warning !== undefined) throw new Error(`The ${role} role printed a warning: ${warning}`);
    },
  };
}
