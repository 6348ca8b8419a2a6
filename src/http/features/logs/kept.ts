import type { KubeClient } from '../../../kube/client/client.ts';
import { findObject } from '../../../kube/client/find-object.ts';
import type { LogLine } from '../../../kube/streams/pod-log.ts';
import { INSTANCE_LOGS, instanceLogName, unpackLines } from '../../../resources/instance-log.ts';
import { ApiError } from '../../interface/errors/api-error.ts';

/** What was kept of the log of a start that is over. */
export interface KeptLog {
  lines: readonly LogLine[];
  /** Of the container before the last restart; undefined when there was none. */
  previous: readonly LogLine[] | undefined;
  /** Whether older lines were left out. */
  truncated: boolean;
}

/** An instance, also one that is gone. */
export interface LoggedInstance {
  namespace: string;
  name: string;
  uid: string;
  /** Number of its last start. */
  last: number;
}

/** Undefined when nothing was kept. */
export async function findKeptLog(
  client: KubeClient,
  { namespace, uid }: Pick<LoggedInstance, 'namespace' | 'uid'>,
  start: number,
): Promise<KeptLog | undefined> {
  const found = await findObject(client, INSTANCE_LOGS, { namespace, name: instanceLogName(uid, start) });
  if (found === undefined) return undefined;
  const { lines, previous, truncated } = found.spec;
  return { lines: unpackLines(lines), previous: previous === undefined ? undefined : unpackLines(previous), truncated };
}

export function nothingKept(start: number): ApiError {
  return new ApiError(
    'log_not_found',
    `No log of start ${start} was kept: its container never started, its node did not answer when it ended, or newer logs took its place.`,
  );
}

export function notRestarted(): ApiError {
  const message = 'The container was not restarted since the instance was started: there is no earlier log.';
  return new ApiError('log_not_found', message);
}
