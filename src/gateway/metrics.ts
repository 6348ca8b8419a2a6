import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { CallOutcome } from './calls/call.ts';
import type { Dialect, Usage } from './dialects/index.ts';
import type { FallbackReason } from '../resources/model-servers/names.ts';
import type { Endpoint } from './endpoint.ts';
import type { PlainRoute } from '../wire/model-endpoints.ts';

/** A model in a label. */
interface Named {
  name: string;
  /** Every tenant may call it. */
  isShared: boolean;
}

/** One finished call. */
export interface CallRecord {
  operation: Dialect | PlainRoute;
  /** Absent when the client named no known model. */
  model: Named | undefined;
  keyId: string;
  route: 'native' | 'translated' | 'none';
  outcome: CallOutcome;
  seconds: number;
  firstByteSeconds: number | undefined;
  attempts: number;
  /** Why it went to another model than it named. */
  fallback: FallbackReason | undefined;
  usage: Usage | undefined;
  /** How often another server went on with its stream. */
  continuations: number;
}

/** What is read at each scrape. */
export interface GatewayState {
  endpoints: () => Iterable<Endpoint>;
  /** The model of each call that waits for a start. */
  waiting: () => Iterable<Named>;
  /** The model of each call that waits for a busy server. */
  queued: () => Iterable<Named>;
  /** Whether series name API keys, and models that one tenant has for itself. */
  namesTenants: boolean;
}

const MAX_MODELS = 200;
const MAX_KEYS = 1000;

/** Bounds the values of a label. Values beyond the first `max` become `other`. */
class LabelBound {
  readonly #max: number;
  readonly #seen = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  of(value: string): string {
    if (this.#seen.has(value)) return value;
    if (this.#seen.size >= this.#max) return 'other';
    this.#seen.add(value);
    return value;
  }
}

/**
 * Names follow the OpenTelemetry semantic conventions for generative AI in Prometheus spelling, else `berth_gateway_`.
 */
export class GatewayMetrics {
  readonly #models = new LabelBound(MAX_MODELS);
  readonly #keys = new LabelBound(MAX_KEYS);
  readonly #duration;
  readonly #firstToken;
  readonly #failovers;
  readonly #fallbacks;
  readonly #continuations;
  readonly #queueWait;
  readonly #sums = new Map<string, CallSums>();
  readonly #namesTenants: boolean;

  constructor(registry: Registry, { endpoints, waiting, queued, namesTenants }: GatewayState) {
    this.#namesTenants = namesTenants;
    const registers = [registry];
    this.#countCalls(registers);
    this.#duration = new Histogram({
      name: 'gen_ai_server_request_duration_seconds',
      help: 'From the request to the end of the answer.',
      labelNames: ['gen_ai_request_model', 'gen_ai_operation_name', 'berth_route', 'berth_outcome'],
      // The buckets that the conventions advise.
      buckets: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
      registers,
    });
    this.#firstToken = new Histogram({
      name: 'gen_ai_server_time_to_first_token_seconds',
      help: 'From the request to the first byte of a streamed answer.',
      labelNames: ['gen_ai_request_model', 'berth_route'],
      buckets: [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
      registers,
    });
    this.#failovers = new Counter({
      name: 'berth_gateway_failovers_total',
      help: 'Calls sent again to another endpoint.',
      labelNames: ['gen_ai_request_model'],
      registers,
    });
    this.#fallbacks = new Counter({
      name: 'berth_gateway_fallbacks_total',
      help: 'Calls that another model answered than they named, by why (unavailable, full, overflow, error).',
      labelNames: ['gen_ai_request_model', 'reason'],
      registers,
    });
    this.#continuations = new Counter({
      name: 'berth_gateway_continuations_total',
      help: 'How often another server was asked to continue a stream that broke off.',
      labelNames: ['gen_ai_request_model'],
      registers,
    });
    this.#queueWait = new Histogram({
      name: 'berth_gateway_queue_wait_seconds',
      help: 'How long calls waited for a busy model server, those that left included.',
      labelNames: ['gen_ai_request_model'],
      buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120],
      registers,
    });
    watchEndpoints(registry, endpoints);
    const help = 'Calls that wait for a model to come up from zero.';
    this.#watchCalls(registers, { name: 'berth_gateway_waiting', help, calls: waiting });
    const queuedHelp = 'Calls that wait until a busy model server has room.';
    this.#watchCalls(registers, { name: 'berth_gateway_queued', help: queuedHelp, calls: queued });
  }

  /** A call has waited for a busy server. */
  waited(model: Named, seconds: number): void {
    this.#queueWait.observe({ gen_ai_request_model: this.#modelLabel(model) }, seconds);
  }

  record(call: CallRecord): void {
    const model = call.model === undefined ? 'unknown' : this.#modelLabel(call.model);
    const { labels, firstTokenLabels, counts } = this.#sumsOf(call, model);
    counts.requests += 1;
    this.#duration.observe(labels, call.seconds);
    if (call.firstByteSeconds !== undefined) this.#firstToken.observe(firstTokenLabels, call.firstByteSeconds);
    if (call.attempts > 1) this.#failovers.inc({ gen_ai_request_model: model }, call.attempts - 1);
    if (call.continuations > 0) this.#continuations.inc({ gen_ai_request_model: model }, call.continuations);
    if (call.fallback !== undefined) this.#fallbacks.inc({ gen_ai_request_model: model, reason: call.fallback });
    if (call.usage === undefined) return;
    counts.input += call.usage.inputTokens;
    counts.output += call.usage.outputTokens;
    counts.cached_input += call.usage.cachedTokens;
    counts.reasoning_output += call.usage.reasoningTokens;
  }

  /** Counters that take their sums at a scrape: prom-client hashes all labels at each increment, up to five a call. */
  #countCalls(registers: Registry[]): void {
    const sums = this.#sums;
    const requests = new Counter({
      name: 'berth_gateway_requests_total',
      help: 'Model calls by model, API key, operation, route and outcome.',
      labelNames: ['gen_ai_request_model', 'gen_ai_operation_name', 'berth_route', 'berth_outcome', 'berth_key_id'],
      registers,
      collect() {
        requests.reset();
        for (const { labels, key, counts } of sums.values())
          requests.inc({ ...labels, berth_key_id: key }, counts.requests);
      },
    });
    const tokens = new Counter({
      name: 'gen_ai_client_token_usage_total',
      help: 'Tokens by model, API key and type (input, output, cached_input, reasoning_output).',
      labelNames: ['gen_ai_request_model', 'gen_ai_token_type', 'berth_key_id'],
      registers,
      collect() {
        tokens.reset();
        for (const { labels, key, counts } of sums.values()) {
          const { gen_ai_request_model } = labels;
          for (const type of TOKEN_TYPES) {
            const of = { gen_ai_request_model, gen_ai_token_type: type, berth_key_id: key };
            if (counts[type] > 0) tokens.inc(of, counts[type]);
          }
        }
      },
    });
  }

  #watchCalls(
    registers: Registry[],
    { name, help, calls }: { name: string; help: string; calls: () => Iterable<Named> },
  ): void {
    const labelOf = (model: Named): string => this.#modelLabel(model);
    const counts = new Map<string, number>();
    const gauge = new Gauge({
      name,
      help,
      labelNames: ['gen_ai_request_model'],
      registers,
      collect() {
        // A model for which no call waits any more has 0, and not the last count for ever.
        for (const model of counts.keys()) counts.set(model, 0);
        for (const one of calls()) {
          const model = labelOf(one);
          counts.set(model, (counts.get(model) ?? 0) + 1);
        }
        for (const [model, count] of counts) gauge.set({ gen_ai_request_model: model }, count);
      },
    });
  }

  #modelLabel({ name, isShared }: Named): string {
    return isShared || this.#namesTenants ? this.#models.of(name) : 'private';
  }

  #sumsOf({ operation, route, outcome, keyId }: CallRecord, model: string): CallSums {
    const key = this.#namesTenants ? this.#keys.of(keyId) : 'all';
    // Bounded by the two label bounds times the fixed labels.
    const id = `${model}\0${key}\0${operation}\0${route}\0${outcome}`;
    let sums = this.#sums.get(id);
    if (sums === undefined) {
      const shared = { gen_ai_request_model: model, berth_route: route };
      sums = {
        key,
        labels: { ...shared, gen_ai_operation_name: operation, berth_outcome: outcome },
        firstTokenLabels: shared,
        counts: { requests: 0, input: 0, output: 0, cached_input: 0, reasoning_output: 0 },
      };
      this.#sums.set(id, sums);
    }
    return sums;
  }
}

const TOKEN_TYPES = ['input', 'output', 'cached_input', 'reasoning_output'] as const;

/** What the calls with the same labels add up to. */
interface CallSums {
  key: string;
  labels: Record<'gen_ai_request_model' | 'gen_ai_operation_name' | 'berth_route' | 'berth_outcome', string>;
  firstTokenLabels: Record<'gen_ai_request_model' | 'berth_route', string>;
  counts: Record<(typeof TOKEN_TYPES)[number] | 'requests', number>;
}

function watchEndpoints(registry: Registry, endpoints: () => Iterable<Endpoint>): void {
  const registers = [registry];
  const states = new Gauge({
    name: 'berth_gateway_endpoints',
    help: 'Model server endpoints by state: ready, draining, open (circuit breaker, until a call or an answer shows that the server is well), unprobed.',
    labelNames: ['state'],
    registers,
    collect() {
      const counts = { ready: 0, draining: 0, open: 0, unprobed: 0 };
      for (const endpoint of endpoints()) counts[stateOf(endpoint)] += 1;
      for (const [state, count] of Object.entries(counts)) states.set({ state }, count);
    },
  });
  const inFlight = new Gauge({
    name: 'berth_gateway_in_flight',
    help: 'Requests under way to model servers.',
    registers,
    collect() {
      let count = 0;
      for (const endpoint of endpoints()) count += endpoint.inFlight;
      inFlight.set(count);
    },
  });
}

function stateOf(endpoint: Endpoint): 'ready' | 'draining' | 'open' | 'unprobed' {
  if (!endpoint.available) return 'draining';
  if (endpoint.probe === undefined) return 'unprobed';
  // While one call at a time tries a server that failed or hung, nobody knows that it is well.
  return endpoint.breaker.state === 'closed' ? 'ready' : 'open';
}
