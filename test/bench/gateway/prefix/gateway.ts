import express from 'express';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { setPrincipal } from '../../../../src/access/principal.ts';
import { createModelGateway } from '../../../../src/gateway/gateway.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { DEFAULT_CEILINGS } from '../../../../src/resources/tenants/ceilings.ts';
import { memoryCounter } from '../../../../src/runtime/counter.ts';
import { ModelCluster } from '../../../support/model-cluster.ts';
import { recordingClient } from '../../../support/recording-client.ts';
import { accessWhile } from '../../../support/access.ts';
import { usePolicy, type Policy } from './policies.ts';

/** The gateway in front of servers on local ports, choosing among them by a policy. Usage: gateway.ts PORT PORTS POLICY */
const [port, ports = '', policy] = process.argv.slice(2);
usePolicy(policy as Policy);
const cluster = new ModelCluster();
cluster.serve({ name: 'llama', ports: ports.split(',').map(Number) });
const { services, slices, inferencePools, pods, namespaces } = cluster;
const gateway = createModelGateway({
  client: recordingClient().client,
  replica: 'replica-1',
  services,
  slices,
  inferencePools,
  pods,
  namespaces,
  tenants: { has: () => true, onChange: () => () => undefined },
  access: accessWhile().access,
  ceilings: () => DEFAULT_CEILINGS,
  caller: (principal) => principal,
  budgets: () => undefined,
  keyBudgets: () => undefined,
  engineSecrets: { names: [], read: () => Promise.reject(new Error('no Secret')) },
  saltKey: () => Promise.resolve(Buffer.alloc(32)),
  metricsNameTenants: false,
  namespace: 'berth-system',
  counter: memoryCounter,
  registry: new Registry(),
  stopping: new AbortController().signal,
  log: pino({ level: 'warn' }),
  clock: systemClock(),
  billingClock: systemClock(),
});
gateway.start();
const app = express();
app.use('/api/v1', (request, _response, next) => {
  setPrincipal(request, { keyId: 'bench', namespace: 'bench', name: 'bench', scopes: ['models'] });
  next();
});
app.use('/api/v1', gateway.router);
app.listen(Number(port), '127.0.0.1');
