import { connect } from 'node:net';
import { platform } from 'node:os';
import { once } from 'node:events';
import { LocalFailure } from '../../lib/failure.ts';
import { waitFor } from '../../lib/wait.ts';
import type { ClusterNetwork } from '../built/network.ts';
import { ask, type Engine } from './engine.ts';

/** Routes of this machine to addresses inside a node. */
export interface Routes {
  engine: Engine;
  /** The image of the node, which has the program `ip`. */
  image: string;
  /** The address of the node. */
  via: string;
  to: readonly string[];
}

/** Milliseconds. */
const REACH_TIMEOUT = 5000;

/**
 * Leads the addresses of pods and Services to their node. The engine does it, which has the right to where this user has
 * not. Throws LocalFailure where it cannot: where the engine runs in a virtual machine, or without root.
 */
export async function addRoutes(
  engine: Engine,
  node: string,
  { podCidr, serviceCidr }: Pick<ClusterNetwork, 'podCidr' | 'serviceCidr'>,
): Promise<Routes> {
  if (platform() !== 'linux') throw new LocalFailure(`${engine} runs in a virtual machine.`, 'Use Linux.');
  const format = '{{.Image}} {{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}';
  const [image = '', via = ''] = (await ask(engine, 'inspect', '--format', format, node)).split(' ');
  const routes = { engine, image, via, to: [podCidr, serviceCidr] };
  await changeRoutes('replace', routes);
  // The first address of the range is the `kubernetes` Service's.
  const host = serviceCidr.replace(/\.\d+\/\d+$/, '.1');
  if ((await waitFor(() => answers(host, 443), { timeout: REACH_TIMEOUT })) === true) return routes;
  await removeRoutes(routes);
  throw new LocalFailure(`${engine} runs in a virtual machine or without root.`, 'Use an engine that runs as root.');
}

/** Removes those that are there. Throws LocalFailure. */
export async function removeRoutes(routes: Routes): Promise<void> {
  await changeRoutes('flush exact', routes);
}

async function changeRoutes(change: string, { engine, image, via, to }: Routes): Promise<void> {
  const script = to.map((cidr) => `ip route ${change} ${cidr} via ${via}`).join(' && ');
  const onHost = ['--rm', '--network', 'host', '--cap-add', 'NET_ADMIN', '--entrypoint', 'sh'];
  await ask(engine, 'run', ...onHost, image, '-c', script);
}

async function answers(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port, timeout: 1000 });
  socket.on('timeout', () => socket.destroy(new Error('no answer')));
  return once(socket, 'connect')
    .then(
      () => true,
      () => false,
    )
    .finally(() => socket.destroy());
}
