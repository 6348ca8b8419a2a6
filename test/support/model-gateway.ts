import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { vi } from 'vitest';
import type { EngineSecrets } from '../../src/resources/model-servers/engine-credential.ts';
import {
  createModelGateway,
  type ModelGateway,
  type ModelGatewayDeps,
  type ScaleFromZero,
} from '../../src/gateway/gateway.ts';
import { memoryCounter } from '../../src/runtime/counter.ts';
import { setPrincipal, type Principal } from '../../src/access/principal.ts';
import type { BudgetOf, KeyBudgetOf } from '../../src/budgets/counted.ts';
import type { CeilingsOf } from '../../src/access/ceilings.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { DEFAULT_CEILINGS } from '../../src/resources/tenants/ceilings.ts';
import type { ResponseStore } from '../../src/gateway/state/response-store.ts';
import { accessWhile } from './access.ts';
import { recordingClient } from './recording-client.ts';
import { ModelCluster } from './model-cluster.ts';
import { startEngine, type EngineOptions, type ScriptedEngine } from './scripted-engine.ts';

// The tests use real sockets on a machine that may be busy. They wait for conditions, not for times.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

export const CALLER: Principal = { keyId: 'key-1', namespace: 'tenant-a', name: 'test', scopes: ['models'] };

/** Logs nothing, because tests look at behaviour. */
export const quiet = pino({ level: 'silent' });

export interface TestGateway {
  /** `http://127.0.0.1:port/api`: the base URL of Anthropic's clients; OpenAI's add `/v1`. */
  base: string;
  cluster: ModelCluster;
  registry: Registry;
  /** Sets the caller of every following request. */
  callAs(principal: Principal): void;
  /** Waits until the model list shows this many ready endpoints of the model. */
  ready(model: string, endpoints?: number): Promise<void>;
  /** Ends the calls under way, as a replica that stops. */
  endCalls: () => void;
  close: () => Promise<void>;
}

export interface GatewayOptions {
  /** By default nobody loses access. */
  access?: ModelGatewayDeps['access'];
  /** By default in memory. */
  store?: ResponseStore;
  /** By default what holds without a TenantPolicy. */
  ceilings?: CeilingsOf;
  budgets?: BudgetOf;
  keyBudgets?: KeyBudgetOf;
  /** By default the clock of the machine. */
  billingClock?: ModelGatewayDeps['billingClock'];
  /** By default this replica shares nothing with others. */
  holdings?: ModelGatewayDeps['holdings'];
  /** By default every caller stays as it was. */
  caller?: ModelGatewayDeps['caller'];
  clock?: Clock;
  scaleFromZero?: ScaleFromZero;
  /** By default the replica never stops. */
  stopping?: AbortSignal;
  engineSecrets?: EngineSecrets;
  /** By default every namespace is a tenant's. */
  tenants?: ModelGatewayDeps['tenants'];
  saltKey?: ModelGatewayDeps['saltKey'];
  metricsNameTenants?: boolean;
  /** Takes the records of tokens; by default one that keeps nothing. */
  client?: ModelGatewayDeps['client'];
}

const SALT_KEY = Buffer.from('of all replicas');
const NO_SECRETS: EngineSecrets = { names: [], read: () => Promise.reject(new Error('no Secret')) };

type Process = Pick<ModelGatewayDeps, 'registry' | 'log' | 'clock'>;

/** The gateway of Berth's namespace over a cluster that the test fills, at work; with what holds where nothing is set. */
export function gatewayOn(cluster: ModelCluster, settings: Process & Partial<ModelGatewayDeps>): ModelGateway {
  const { services, slices, inferencePools, pods, namespaces, modelServers } = cluster;
  const gateway = createModelGateway({
    client: recordingClient().client,
    replica: 'replica-1',
    services,
    slices,
    inferencePools,
    pods,
    namespaces,
    modelServers,
    caller: (principal) => principal,
    tenants: { has: () => true, onChange: () => () => undefined },
    access: accessWhile().access,
    ceilings: () => DEFAULT_CEILINGS,
    budgets: () => undefined,
    keyBudgets: () => undefined,
    namespace: 'berth-system',
    engineSecrets: NO_SECRETS,
    saltKey: () => Promise.resolve(SALT_KEY),
    counter: memoryCounter,
    metricsNameTenants: false,
    stopping: new AbortController().signal,
    billingClock: settings.clock,
    ...settings,
  });
  gateway.start();
  return gateway;
}

/** The real router on a local port, over a cluster that the test fills. */
export async function startGateway(cluster = new ModelCluster(), options: GatewayOptions = {}): Promise<TestGateway> {
  let principal = CALLER;
  const registry = new Registry();
  const gateway = gatewayOn(cluster, { registry, log: quiet, clock: systemClock(), ...options });
  const app = express();
  app.set('query parser', false);
  app.use((request, _response, next) => {
    setPrincipal(request, principal);
    next();
  });
  app.use('/api/v1', gateway.router);
  const server = createServer(app);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`;
  return {
    base,
    cluster,
    registry,
    callAs: (next) => {
      principal = next;
    },
    ready: (model, endpoints = 1) =>
      vi.waitFor(
        async () => {
          const response = await fetch(`${base}/v1/models/${model}`);
          const { ready_endpoints: count } = (await response.json()) as { ready_endpoints?: number };
          if (count !== endpoints) throw new Error(`${model} has ${count} of ${endpoints} ready endpoints`);
        },
        { timeout: 90_000, interval: 10 },
      ),
    endCalls: gateway.endCalls,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
      await gateway.stop();
    },
  };
}

/** Waits until the check passes. */
export function eventually<T>(check: () => T | Promise<T>, interval = 5): Promise<T> {
  return vi.waitFor(check, { timeout: 90_000, interval });
}

/** Makes one call. Does not read the answer. */
export function post(
  gateway: TestGateway,
  path: string,
  body: unknown,
  init: { headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Response> {
  const headers = { 'content-type': 'application/json', ...init.headers };
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return fetch(`${gateway.base}/v1/${path}`, { method: 'POST', body: text, headers, signal: init.signal ?? null });
}

export interface GatewayTo {
  gateway: TestGateway;
  engines: ScriptedEngine[];
  close: () => Promise<void>;
}

/** A gateway in front of engines that all serve the model `tiny` to every tenant. */
export function gatewayTo(...options: EngineOptions[]): Promise<GatewayTo> {
  return gatewayToServer('berth-system', options);
}

/** The same of a server that the caller's tenant has for itself. */
export function gatewayToOwn(...options: EngineOptions[]): Promise<GatewayTo> {
  return gatewayToServer(CALLER.namespace, options);
}

async function gatewayToServer(namespace: string, options: readonly EngineOptions[]): Promise<GatewayTo> {
  const engines = await Promise.all(options.map((option) => startEngine(option)));
  const gateway = await startGateway();
  gateway.cluster.serve({ name: 'tiny-server', namespace, ports: engines.map(({ port }) => port) });
  await gateway.ready('tiny', engines.length);
  return {
    gateway,
    engines,
    close: async () => {
      await gateway.close();
      await Promise.all(engines.map((engine) => engine.close()));
    },
  };
}
