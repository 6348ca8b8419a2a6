import { Controller, type ControllerOptions } from '../runtime/controller.ts';
import { apiKeySources, reconcileApiKey } from './api-key/reconcile.ts';
import { poolSources, reconcilePool } from './gpu-pool/reconcile.ts';
import { reconcileTemplate, templateSources } from './instance-template/reconcile.ts';
import { reconcileSshKey, sshKeySources } from './ssh-key/reconcile.ts';
import { type CommonDeps, RECONCILE_TIMEOUT_MS } from './common-deps.ts';
import type { StatusRun } from './status-run.ts';

const WORKERS = 2;

/** The controllers that write statuses and nothing else. */
export function createStatusControllers(deps: CommonDeps): Controller[] {
  const { clock, log, stores, metrics } = deps;
  const controller = (
    name: string,
    sources: ControllerOptions['sources'],
    reconcile: (run: StatusRun) => ReturnType<ControllerOptions['reconcile']>,
  ): Controller =>
    new Controller({
      name,
      sources,
      reconcile: (key, context) => reconcile({ deps, key, context }),
      concurrency: WORKERS,
      timeoutMs: RECONCILE_TIMEOUT_MS,
      clock,
      log,
      metrics: metrics(name, WORKERS),
    });
  return [
    controller('sshkey', sshKeySources(stores), reconcileSshKey),
    controller('instancetemplate', templateSources(stores), reconcileTemplate),
    controller('apikey', apiKeySources(stores), reconcileApiKey),
    controller('gpupool', poolSources(stores, deps), reconcilePool),
  ];
}
