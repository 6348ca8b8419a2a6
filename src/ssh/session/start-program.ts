import type { PodTarget } from '../../access/pod-target.ts';
import type { StreamEndpoint } from '../../kube/streams/websocket.ts';
import type { DirectWay } from '../direct-way.ts';
import { startOnLink } from './direct-process.ts';
import { hangUp, launchOf, startInPod, type PodProcess, type What } from './pod-process.ts';

export interface Ways {
  endpoint: StreamEndpoint;
  direct: Pick<DirectWay, 'to'>;
}

/** Starts what a session asks for, by the direct way where it is open. Rejects with an error that says why not. */
export async function startProgram(
  { endpoint, direct }: Ways,
  target: PodTarget,
  what: What,
  signal: AbortSignal,
): Promise<PodProcess> {
  const link = await direct.to(target);
  if (link === undefined) return await startInPod(endpoint, target, what, signal);
  const launch = launchOf(what);
  return await startOnLink(link, launch, (leader) => hangUp(endpoint, target, launch.session, leader));
}
