import type { ServerInfo } from '../kube/client/server-info.ts';
import { activity } from './checks/activity.ts';
import { admission } from './checks/admission.ts';
import { clocks } from './checks/clocks.ts';
import { definitions } from './checks/definitions.ts';
import { gpuNodes } from './checks/gpu-nodes.ts';
import { isolation } from './checks/isolation.ts';
import { devices } from './checks/devices.ts';
import { disks } from './checks/disks.ts';
import { exporters, monitors } from './checks/metrics.ts';
import { network } from './checks/network.ts';
import { nodeLabels } from './checks/node-labels.ts';
import { otherPolicies } from './checks/other-policies.ts';
import { ownNamespace } from './checks/own-namespace.ts';
import { poolSettings } from './checks/pools.ts';
import { roles } from './checks/roles.ts';
import { tenants } from './checks/tenants.ts';
import { versions } from './checks/versions.ts';
import { waysIn } from './checks/ways-in.ts';
import { webhooks } from './checks/webhooks.ts';
import { type Facts, findRelease } from './facts.ts';
import type { Check, Finding } from './finding.ts';
import type { Snapshot } from './sources.ts';

/** Every check, in the order in which an operator mends: what runs first, then what is for rent, then who is kept apart. */
export const CHECKS: readonly Check[] = [
  versions,
  definitions,
  roles,
  activity,
  clocks,
  waysIn,
  gpuNodes,
  devices,
  nodeLabels,
  poolSettings,
  isolation,
  admission,
  network,
  otherPolicies,
  webhooks,
  tenants,
  ownNamespace,
  disks,
  monitors,
  exporters,
];

export interface Report {
  /** Namespace of Berth. */
  namespace: string;
  /** The API server's version, as in v1.36.2. */
  kubernetes: string;
  /** Checks, in order, with what each found. */
  checks: readonly { name: string; title: string; findings: readonly Finding[] }[];
}

export interface Circumstances {
  server: ServerInfo;
  /** This machine's clock when the server answered, milliseconds since the epoch. */
  answeredAt: number;
  /** The same clock when the reading ended. */
  readAt: number;
  /** Namespace of Berth; undefined: where its controller is found. */
  namespace: string | undefined;
}

/** What a check could not see, one finding for each kind. */
function gaps({ name, needs }: Check, { unread }: Snapshot): Finding[] {
  return needs.flatMap((source): Finding[] => {
    const gap = unread.get(source);
    if (gap === undefined) return [];
    const isRight = gap.right !== undefined;
    return [
      {
        check: name,
        severity: 'unknown',
        reason: isRight ? 'RightMissing' : 'NotRead',
        objects: [],
        message: isRight ? `Not checked: you may not ${gap.right}.` : `Not checked: ${gap.message}`,
        why: 'The problem that this check looks for may be there.',
        remedy: isRight
          ? `kubectl auth can-i ${gap.right}   # an administrator of the cluster can give you the right`
          : 'kubectl get --raw /readyz',
      },
    ];
  });
}

function factsOf(snapshot: Snapshot, { server, answeredAt, readAt, namespace }: Circumstances): Facts {
  const ahead = server.date === undefined ? undefined : answeredAt - server.date;
  return {
    ...findRelease(snapshot.objects.deployments, namespace),
    gitVersion: server.gitVersion,
    now: readAt - (ahead ?? 0),
    ahead,
    absent: snapshot.absent,
  };
}

/** Makes every check on what was read. Pure: the same snapshot has the same report. */
export function examine(snapshot: Snapshot, circumstances: Circumstances): Report {
  const facts = factsOf(snapshot, circumstances);
  const checks = CHECKS.map((check) => {
    const { name, title } = check;
    const missing = gaps(check, snapshot);
    const found = missing.length > 0 ? [] : check.find(snapshot.objects, facts);
    return { name, title, findings: [...missing, ...found.map((one) => ({ check: name, ...one }))] };
  });
  return { namespace: facts.namespace, kubernetes: facts.gitVersion, checks };
}

/** Whether nothing was found that is wrong for sure. Warnings and what is not known do not count. */
export function isSound({ checks }: Report): boolean {
  return !checks.some(({ findings }) => findings.some(({ severity }) => severity === 'error'));
}
