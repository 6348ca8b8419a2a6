import { ConflictError, isNamespaceAbsent, isNamespaceTerminating, KubeError } from '../../../kube/errors.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { answersKey, writeAnswer } from '../../history/write.ts';
import { sentence, words } from '../decide/pod/pod-facts.ts';
import type { Waiting } from '../decide/status/ready.ts';
import type { Run, Unkept } from './run.ts';

const LIMIT_MINUTES = 5;
/** How long the object of an instance stays for a history that cannot be written. It holds nothing but its name. */
const LIMIT_MS = LIMIT_MINUTES * 60_000;
const RETRY_MS = 5_000;

function told(why: string): string {
  return `The GPUs of the instance are free. The controller cannot write its history, by which Berth knows a request that is sent again with the same Idempotency-Key. ${sentence(why)} The controller tries for ${LIMIT_MINUTES} minutes. Then the instance goes without it.`;
}

/**
 * Sees to it that a history answers a repeated request before the instance goes. Returns what the instance waits for, and
 * until when; undefined when it may go.
 */
export async function keepHistory(
  run: Run,
  instance: GpuInstance,
): Promise<{ waiting: Waiting; until: number } | undefined> {
  if (!answersKey(instance)) return undefined;
  const { deps, context } = run;
  const { uid = '' } = instance.metadata;
  const now = deps.clock.monotonic();
  const before = deps.unkept.get(uid);
  // What is written about it wakes this run.
  if (before !== undefined && now < before.triedAt + RETRY_MS) return waitFor(run, before);
  const since = before?.since ?? now;
  if (since + LIMIT_MS <= now) {
    context.log.error({ uid, why: before?.why }, 'Instance goes without its history; its request may rent another');
    return undefined;
  }
  // Noted before, for a call that does not end within the time of this run.
  deps.unkept.set(uid, { since, triedAt: Number.NEGATIVE_INFINITY, why: before?.why ?? 'No answer came.' });
  try {
    await writeAnswer(deps, { instance, gone: false }, context.signal);
    return undefined;
  } catch (error) {
    context.signal.throwIfAborted();
    // A conflict is tried again soon.
    if (!(error instanceof KubeError) || error instanceof ConflictError) throw error;
    // Nothing can be created in a namespace that is going, and nothing is rented there any more.
    if (isNamespaceTerminating(error) || isNamespaceAbsent(error)) return undefined;
    if (before === undefined) context.log.warn({ err: error, uid }, 'History of an instance that goes was not written');
    const tried = { since, triedAt: now, why: words(error.statusMessage, error.message) };
    deps.unkept.set(uid, tried);
    return waitFor(run, tried);
  }
}

function waitFor({ deps: { clock } }: Run, { triedAt, why }: Unkept): { waiting: Waiting; until: number } {
  const until = clock.now() + triedAt + RETRY_MS - clock.monotonic();
  return { waiting: { reason: 'Deleting', message: told(why) }, until };
}

/** The same for an instance that is gone already, because another client took its finalizer. Nothing waits for it. */
export async function keepLateHistory({ deps, context }: Run, instance: GpuInstance): Promise<void> {
  if (!answersKey(instance)) return;
  try {
    await writeAnswer(deps, { instance, gone: true }, context.signal);
  } catch (error) {
    context.signal.throwIfAborted();
    if (!(error instanceof KubeError)) throw error;
    if (isNamespaceTerminating(error) || isNamespaceAbsent(error)) return;
    context.log.error({ err: error, uid: instance.metadata.uid }, 'Instance went without its history');
  }
}
