import { createEventRecorder } from '../kube/events.ts';
import { auditSink } from '../ssh/audit-sink.ts';
import { storeDirectory } from '../ssh/directory.ts';
import { loadHostKeys } from '../ssh/host-key.ts';
import { startSshServer } from '../ssh/server.ts';
import type { Role } from './role.ts';

/** Sessions get most of the grace period to end by themselves. */
const DRAIN_MS = 20_000;

export const sshRole: Role = async ({ process, stores, shutdown }) => {
  const { client, config, connection, log, clock } = process;
  const hostKeys = await loadHostKeys(client, config.namespace);
  const directory = storeDirectory({
    instances: stores.get('instances'),
    keys: stores.get('keys'),
    pods: stores.get('pods'),
  });
  const events = createEventRecorder({ client, clock, log, component: 'berth-ssh' });
  const server = await startSshServer({
    endpoint: connection,
    directory,
    audit: auditSink(log, events),
    log,
    now: () => clock.now(),
    hostKey: hostKeys.current,
    listen: { host: config.ssh.host, port: config.ssh.port },
  });
  const ended = new AbortController();
  const sent = events.run(ended.signal);
  shutdown.defer('ssh', async () => {
    await server.close(DRAIN_MS);
    ended.abort();
    await sent;
  });
  log.info({ address: server.address }, 'SSH gateway listens');
};
