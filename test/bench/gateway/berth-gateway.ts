import express from 'express';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { createModelGateway } from '../../../src/gateway/gateway.ts';
import { memoryCounter } from '../../../src/runtime/counter.ts';
import { setPrincipal, type Principal } from '../../../src/access/principal.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import { ModelCluster } from '../../support/model-cluster.ts';

/** The gateway over a cluster of one Service, with a key look-up in front. Usage: berth-gateway.ts PORT UPSTREAMS KEY */
const [port = '0', upstreams = '', key = ''] = process.argv.slice(2);
const principal: Principal = { keyId: 'bench', namespace: 'bench', name: 'bench', scopes: ['models'] };
const keys = new Map([[`Bearer ${key}`, principal]]);
const cluster = new ModelCluster();
cluster.serve({ name: 'mock', ports: upstreams.split(',').map(Number) });

const gateway = createModelGateway({
  services: cluster.services,
  slices: cluster.slices,
  pods: cluster.pods,
  namespaces: cluster.namespaces,
  ceilings: () => DEFAULT_CEILINGS,
  engineSecrets: { names: [], read: () => Promise.reject(new Error('no Secret')) },
  namespace: 'berth-system',
  counter: memoryCounter,
  registry: new Registry(),
  log: pino({ level: 'warn' }),
  clock: systemClock(),
});
gateway.start();
const app = express();
app.use('/api/v1', (request, response, next) => {
  const known = keys.get(request.headers.authorization ?? '');
  if (known === undefined) {
    response.status(401).json({ error: { message: 'Invalid API key.' } });
    return;
  }
  setPrincipal(request, known);
  next();
});
app.use('/api/v1', gateway.router);
app.listen(Number(port), '127.0.0.1', () => console.log('ready'));

// Node writes a profile only on an orderly exit.
process.once('SIGINT', () => process.exit());
