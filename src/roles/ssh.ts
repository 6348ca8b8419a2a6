import { ceilingsReader } from '../access/ceilings.ts';
import { EventRecorder } from '../kube/events.ts';
import { auditSink } from '../ssh/audit.ts';
import { StoreDirectory } from '../ssh/directory.ts';
import { loadHostKeys } from '../ssh/login/host-key.ts';
import { SshServer } from '../ssh/server.ts';
import type { Role } from './role.ts';

/** Milliseconds. Sessions get most of the grace period to end by themselves. */
const DRAIN_MS = 20_000;

export const sshRole: Role = async (context) => {
  const { process, caches, shutdown } = context;
  const { client, config, connection, log, clock } = process;
  const hostKeys = await loadHostKeys(client, config.namespace);
  const directory = new StoreDirectory({ ...caches.pick(['instances', 'pods']), keys: caches.get('sshKeys') });
  const events = new EventRecorder({ client, clock, log, component: 'berth-ssh' });
  const server = new SshServer({
    endpoint: connection,
    directory,
    ceilingsOf: ceilingsReader(caches.get('tenantLimits')),
    audit: auditSink(log, events),
    activity: context.activity(),
    log,
    clock,
    hostKey: hostKeys.current,
    listen: { host: config.ssh.host, port: config.ssh.port },
  });
  await server.listen();
  const ended = new AbortController();
  const written = events.run(ended.signal);
  shutdown.defer('ssh', async () => {
    await server.close(DRAIN_MS);
    ended.abort();
    await written;
  });
  log.info({ address: server.address }, 'SSH gateway listens');
};
