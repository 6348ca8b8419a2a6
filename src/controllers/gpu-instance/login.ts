import type { Run } from './deps.ts';
import type { Observed } from './observed.ts';
import { isPodReady } from './pod-facts.ts';

/**
 * Whether a login works. Once it has worked for a start it is not tried again, and simulated nodes have nothing to log
 * in to.
 */
export async function checkLogin(run: Run, observed: Observed): Promise<Observed['login']> {
  const { deps, context } = run;
  const { instance, pod } = observed;
  const { status } = instance;
  if (deps.checkLogin === undefined || pod === undefined || !isPodReady(pod)) return undefined;
  if (status?.claim?.simulated === true || status?.ending !== undefined || status?.runtype === 'args') return undefined;
  if (status?.stages?.ready !== undefined) return 'works';
  return (await deps.checkLogin(instance, pod, context.signal)) ? 'works' : 'pending';
}

/** Looks for Jupyter until it has answered once in this start. */
export async function checkJupyter({ deps }: Run, observed: Observed): Promise<Observed['jupyter']> {
  const { instance, pod } = observed;
  const { status } = instance;
  if (deps.checkJupyter === undefined || pod === undefined || !isPodReady(pod)) return undefined;
  if (status?.runtype !== 'jupyter' || status.claim?.simulated === true || status.ending !== undefined)
    return undefined;
  const known = status.conditions?.find(({ type }) => type === 'Jupyter');
  if (known?.status === 'True' && status.stages?.ready !== undefined) return 'answers';
  return await deps.checkJupyter(pod);
}
