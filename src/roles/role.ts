import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { Activity } from '../access/activity.ts';
import type { Caches } from '../caches/caches.ts';
import type { TracingConfig } from '../config/tracing.ts';
import { EventRecorder } from '../kube/events.ts';
import type { Tracer } from '../runtime/tracing/tracer.ts';
import type { Shutdown } from '../runtime/shutdown.ts';
import { auditSink, type AuditSink } from '../ssh/audit.ts';
import type { Process } from './process.ts';

export class RoleContext {
  readonly process: Process;
  readonly caches: Caches;
  readonly shutdown: Shutdown;
  #activity: Activity | undefined;
  #audit: AuditSink | undefined;
  #tracer: Promise<Tracer> | undefined;

  constructor(process: Process, caches: Caches, shutdown: Shutdown) {
    this.process = process;
    this.caches = caches;
    this.shutdown = shutdown;
  }

  /** Records the use of instances. Started at the first call, and stopped after the roles that asked for it. */
  activity(): Activity {
    this.#activity ??= this.#startActivity();
    return this.#activity;
  }

  /** Notes who enters instances: one for SSH and terminals. Its last Events go out after the roles that asked for it. */
  audit(): AuditSink {
    this.#audit ??= this.#startAudit();
    return this.#audit;
  }

  /**
   * Traces what the roles do; undefined without a collector. What is left is sent when the roles that asked for it have
   * stopped.
   */
  async tracer(): Promise<Tracer | undefined> {
    const { tracing } = this.process.config;
    if (tracing !== undefined) this.#tracer ??= this.#startTracing(tracing);
    return this.#tracer;
  }

  // Loaded on demand: without a collector no process has the code in memory.
  async #startTracing({ serviceName, ...options }: TracingConfig): Promise<Tracer> {
    const { role, config, log, clock } = this.process;
    const { startTracing } = await import('../runtime/tracing/open-telemetry.ts');
    const resource = {
      'service.name': serviceName ?? `berth-${role}`,
      'service.instance.id': hostname(),
      'k8s.namespace.name': config.namespace,
    };
    const tracing = startTracing({ ...options, resource }, { log, clock });
    this.shutdown.defer('traces', () => tracing.stop());
    log.info({ collector: options.url.host }, 'Traces are sent');
    return tracing.tracer;
  }

  #startAudit(): AuditSink {
    const { log, registry } = this.process;
    const events = new EventRecorder({ ...this.process, component: 'berth-ssh' });
    const ended = new AbortController();
    const written = events.run(ended.signal);
    this.shutdown.defer('audit', () => {
      ended.abort();
      return written;
    });
    return auditSink(log, events, registry);
  }

  #startActivity(): Activity {
    const { config, role } = this.process;
    const activity = new Activity({
      ...this.process,
      instances: this.caches.get('instances'),
      namespace: config.namespace,
      // One process with all roles serves SSH too.
      role: role === 'api' ? 'api' : 'ssh',
      id: randomUUID(),
    });
    const ended = new AbortController();
    const running = activity.run(ended.signal);
    this.shutdown.defer('activity', () => {
      ended.abort();
      return running;
    });
    return activity;
  }
}

/** Starts one role; what it must do at the end it hands to `shutdown`. */
export type Role = (context: RoleContext) => Promise<void>;
