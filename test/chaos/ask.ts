import { setTimeout as delay } from 'node:timers/promises';
import { KubeError, NotFoundError } from '../../src/kube/errors.ts';
import { run } from '../../tools/lib/shell.ts';

const PAUSE = 500;

/** Asks the API server until it answers: at times it is down. */
export async function untilAnswered<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof KubeError) || error instanceof NotFoundError) throw error;
      await delay(PAUSE, undefined, { signal });
    }
  }
}

/** Waits, across outages, until the work gives something. */
export async function untilThere<T>(name: string, work: () => Promise<T | undefined>, signal: AbortSignal): Promise<T> {
  try {
    for (;;) {
      const found = await untilAnswered(work, signal);
      if (found !== undefined) return found;
      await delay(PAUSE, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new Error(`The run ended before this came: ${name}`, { cause: error });
  }
}

export interface Kubectl {
  kubectl: string;
  kubeconfig: string;
}

/** What a command of kubectl prints, once it succeeds: the API server or the kubelet may be down. */
export async function kubectl(
  { kubectl, kubeconfig }: Kubectl,
  { args, input = '' }: { args: readonly string[]; input?: string },
  signal: AbortSignal,
): Promise<string> {
  for (;;) {
    const { code, stdout, stderr } = await run(kubectl, ['--kubeconfig', kubeconfig, ...args], {
      input,
      timeout: 20_000,
    });
    if (code === 0) return stdout;
    if (signal.aborted) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
    await delay(PAUSE, undefined, { signal }).catch(() => undefined);
  }
}
