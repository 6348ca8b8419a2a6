import { parseReport, REPORTED_AT, replicasOf } from '../../resources/activity-lease.ts';
import { rolesIn } from '../facts.ts';
import { check, type Problem } from '../finding.ts';

/** A replica reports every 30 seconds. The leader gives up one whose report does not change in five minutes. */
const SILENT_MS = 360_000;
/** How long a new role may take before its first report. */
const NEW_MS = 300_000;

export const activity = check({
  name: 'activity',
  title: 'Every replica that serves instances says until when they were used',
  needs: ['deployments', 'sshReports', 'apiReports'],
  find({ deployments, sshReports, apiReports }, { namespace, prefix, now }): Problem[] {
    const own = [...sshReports, ...apiReports].filter(({ metadata }) => metadata.namespace === namespace);
    const silent = own.filter((lease) =>
      [...replicasOf(lease).values()].some((text) => parseReport(text).until + SILENT_MS < now),
    );
    const found = silent.map(({ metadata }): Problem => {
      const role = metadata.name.slice(metadata.name.lastIndexOf('-') + 1);
      return {
        severity: 'warning',
        reason: 'ReporterSilent',
        objects: [`${namespace}/lease/${metadata.name}`],
        message: `A replica of the role ${role} has not said for more than ${SILENT_MS / 60_000} minutes who uses instances.`,
        why: 'No instance ends as idle until the controller has given that replica up.',
        remedy: `kubectl logs -n ${namespace} deployment/${prefix}-${role} --all-pods --tail=50`,
      };
    });
    const ssh = rolesIn(deployments, namespace).get('ssh');
    const lease = own.find((one) => sshReports.includes(one));
    const isReported = lease !== undefined && replicasOf(lease).size > 0;
    const isNew = now - Date.parse(ssh?.metadata.creationTimestamp ?? '') < NEW_MS;
    const isServing = (ssh?.status?.readyReplicas ?? 0) > 0;
    const wasThere = lease?.metadata.annotations?.[REPORTED_AT] !== undefined;
    if (isReported || isNew || !(isServing || wasThere)) return found;
    const isIdleOpen = lease === undefined || wasThere;
    return [
      ...found,
      {
        severity: 'error',
        reason: 'ReporterMissing',
        objects: ssh === undefined ? [] : [`${namespace}/deployment/${ssh.metadata.name}`],
        message: 'No replica of the role ssh says who uses instances.',
        why: isIdleOpen
          ? 'No instance ends as idle, whatever its idleTimeout, and each is billed until someone stops it.'
          : 'The controller takes the role for one that is not installed, and instances end as idle under open sessions.',
        remedy: isServing
          ? `kubectl logs -n ${namespace} deployment/${ssh?.metadata.name} --all-pods --tail=50   # may it patch its Lease?`
          : `kubectl delete lease ${lease?.metadata.name} -n ${namespace}   # only if the role is to be away for good`,
      },
    ];
  },
});
