import { podTarget } from '../access/pod-target.ts';
import { DEVICE_CACHES } from '../caches/table.ts';
import { CONTROLLER_CACHES } from '../controllers/stores.ts';
import { startControllers } from '../controllers/start.ts';
import { loadKubeConfig } from '../kube/config/config.ts';
import { createKubeClient } from '../kube/client/rest-client.ts';
import { SECRETS } from '../kube/types.ts';
import { ClockCheck } from '../runtime/clock-check.ts';
import { checkJupyter, checkLogin, checkMonitor } from '../ssh/session/check-login.ts';
import { knownHostsLine, loadHostKeys } from '../ssh/login/host-key.ts';
import type { Role } from './role.ts';

export const controllerRole: Role = async (context) => {
  const { process, caches, shutdown } = context;
  const { client, clock, config, connection, log, registry } = process;
  // Its own connections: a burst of calls must never delay the renewal of the lease.
  const leaseConnection = await loadKubeConfig({ kubeconfig: config.kubeconfig });
  shutdown.defer('lease connections', () => leaseConnection.close());
  const clockCheck = new ClockCheck(clock);
  const hostKeys = await loadHostKeys(client, config.namespace);
  const { scaleNamespaces } = config;
  const { publicHost: host, publicPort: port } = config.ssh;
  const controllers = await startControllers({
    client,
    leaseClient: createKubeClient(leaseConnection, { clock, onDate: (answer) => clockCheck.saw(answer) }),
    clockCheck,
    stores: caches.pick(CONTROLLER_CACHES),
    networkPolicies: config.requiresNetworkPolicy ? caches.get('networkPolicies') : undefined,
    devices: caches.pick(DEVICE_CACHES),
    architectures: config.toolsArchitectures,
    registry,
    log,
    clock,
    tracer: await context.tracer(),
    metricsNameTenants: config.metricsNameTenants,
    defaultPool: config.defaultPool,
    hearsSessions: true,
    config: {
      namespace: config.namespace,
      defaultImage: config.defaultImage,
      toolsImage: config.toolsImage,
      imagePullSecrets: config.imagePullSecrets,
      imagePullPolicy: config.imagePullPolicy,
      claimOnPod: config.claimOnPod,
      ssh: { host, port, knownHosts: knownHostsLine(hostKeys, host, port) },
    },
    modelServers:
      scaleNamespaces.length === 0
        ? undefined
        : {
            services: caches.get('services'),
            leases: caches.get('modelLeases'),
            namespaces: scaleNamespaces,
            namespace: config.namespace,
          },
    outsideServers: config.outsideModels
      ? {
          store: caches.get('modelServers'),
          secrets: {
            names: config.engineSecrets,
            read: (name, signal) => client.get(SECRETS, { namespace: config.namespace, name }, { signal }),
          },
        }
      : undefined,
    checkLogin: (pod) => checkLogin(connection, podTarget(pod)),
    checkJupyter: (pod) => checkJupyter(connection, podTarget(pod)),
    checkMonitor: (pod) => checkMonitor(connection, podTarget(pod)),
  });
  shutdown.defer('controllers', () => controllers.stop());
  void controllers.ended.then((how) => (how === 'ended' ? shutdown.stop('the controllers gave up') : undefined));
};
