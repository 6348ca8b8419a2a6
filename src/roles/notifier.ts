import { SESSION_SECRETS, sessionKeyReader } from '../access/session-key.ts';
import { createKubeClient } from '../kube/client/rest-client.ts';
import { loadKubeConfig } from '../kube/config/config.ts';
import { TargetRules } from '../notifier/addresses.ts';
import { resolveHost, Targets } from '../notifier/target.ts';
import { startNotifier } from '../notifier/start.ts';
import { ClockCheck } from '../runtime/clock-check.ts';
import type { Role } from './role.ts';

/** Delivers events to webhooks of tenants. The only role that connects to where tenants say. */
export const notifierRole: Role = async ({ process, caches, shutdown }) => {
  const { client, clock, config, log, registry } = process;
  const { namespace, kubeconfig } = config;
  // Its own connections: deliveries must never delay the renewal of the lease.
  const leaseConnection = await loadKubeConfig({ kubeconfig });
  shutdown.defer('lease connections', () => leaseConnection.close());
  const clockCheck = new ClockCheck(clock);
  const notifier = startNotifier({
    client,
    leaseClient: createKubeClient(leaseConnection, { clock, onDate: (answer) => clockCheck.saw(answer) }),
    stores: caches.pick(['webhooks', 'histories', 'tenantLimits']),
    targets: new Targets({ rules: new TargetRules(config.webhookNetworks), resolve: resolveHost, clock }),
    key: await sessionKeyReader(client, { namespace, name: SESSION_SECRETS.webhooks })(),
    namespace,
    registry,
    log,
    // Targets refuse what is signed for another time, and what is three days old is dropped.
    clock: { ...clock, now: () => clockCheck.now() },
  });
  shutdown.defer('notifier', () => notifier.stop());
  void notifier.ended.then((how) => (how === 'ended' ? shutdown.stop('the notifier gave up') : undefined));
};
