import { type BerthProcess, startBerth } from '../berth-process.ts';
import { type Call, clientOf } from './client.ts';
import { roundRobin } from './round-robin.ts';

/** Addresses of two replicas of the api role, and of a proxy that takes them in turns. */
export interface Addresses {
  url: string;
  replicas: readonly [string, string];
}

export interface ServeOptions {
  /** Berth's own namespace. */
  namespace?: string;
  env?: Record<string, string>;
}

/** Two replicas in processes of their own, behind the proxy. */
export interface Replicas extends Addresses, AsyncDisposable {
  processes: readonly [BerthProcess, BerthProcess];
}

function isAlive({ child }: BerthProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

export async function startReplicas(kubeconfig: string, options: ServeOptions = {}): Promise<Replicas> {
  const env = { BERTH_DEFAULT_IMAGE: 'debian:12', ...options.env };
  const start = () => startBerth(kubeconfig, 'api', options.namespace, { env });
  const starting = [start(), start()] as const;
  const stop = async (): Promise<void> => {
    for (const one of await Promise.allSettled(starting)) {
      if (one.status === 'fulfilled') await one.value[Symbol.asyncDispose]();
    }
  };
  const processes = await Promise.all(starting).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  const proxy = await roundRobin(() => processes.filter(isAlive).map(({ url }) => new URL(url)));
  return {
    url: proxy.url,
    replicas: [processes[0].url, processes[1].url],
    processes,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await stop();
    },
  };
}

/** A client of each replica, past the proxy. */
export function callsOf({ replicas: [one, two] }: Addresses, token: string): readonly [Call, Call] {
  return [clientOf(one, token), clientOf(two, token)];
}
