import { CONTROLLER_CACHES } from '../controllers/stores.ts';
import { startControllers } from '../controllers/start.ts';
import { loadKubeConfig } from '../kube/config/config.ts';
import type { Pod } from '../kube/types.ts';
import { createKubeClient } from '../kube/client/rest-client.ts';
import { hasTools, MAIN_CONTAINER } from '../resources/pod/tools-volume.ts';
import { checkJupyter, checkLogin } from '../ssh/session/check-login.ts';
import type { PodTarget } from '../ssh/directory.ts';
import { knownHostsLine, loadHostKeys } from '../ssh/login/host-key.ts';
import type { Role } from './role.ts';

function targetOf(pod: Pod): PodTarget {
  const { name, namespace = '', uid = '' } = pod.metadata;
  return { namespace, pod: name, container: MAIN_CONTAINER, uid, tools: hasTools(pod) };
}

export const controllerRole: Role = async ({ process, caches, shutdown }) => {
  const { client, clock, config, connection, log, registry } = process;
  // Its own connections: a burst of calls must never delay the renewal of the lease.
  const leaseConnection = await loadKubeConfig({ kubeconfig: config.kubeconfig, context: config.context });
  shutdown.defer('lease connections', () => leaseConnection.close());
  const hostKeys = await loadHostKeys(client, config.namespace);
  const { publicHost: host, publicPort: port } = config.ssh;
  const controllers = await startControllers({
    client,
    leaseClient: createKubeClient(leaseConnection, { clock }),
    stores: caches.pick(CONTROLLER_CACHES),
    registry,
    log,
    clock,
    random: Math.random,
    config: {
      namespace: config.namespace,
      defaultImage: config.defaultImage,
      toolsImage: config.toolsImage,
      ssh: { host, port, knownHosts: knownHostsLine(hostKeys, host, port) },
    },
    checkLogin: async (pod) => (await checkLogin(connection, targetOf(pod))).ok,
    checkJupyter: (pod) => checkJupyter(connection, targetOf(pod)),
  });
  shutdown.defer('controllers', () => controllers.stop());
  void controllers.ended.then((how) => (how === 'lost' ? shutdown.stop('another replica leads') : undefined));
};
