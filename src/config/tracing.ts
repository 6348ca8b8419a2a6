import { z } from 'zod';
import { trimEnd } from '../lib/trim-end.ts';

/** Those of the OpenTelemetry specification that Berth has. */
const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

const share = z.coerce.number().min(0).max(1);

/** The variables of tracing, as OpenTelemetry names them. */
export const tracingEnvironment = {
  OTEL_EXPORTER_OTLP_ENDPOINT: z.string().optional(),
  OTEL_TRACES_SAMPLER: z.string().default('parentbased_always_on'),
  OTEL_TRACES_SAMPLER_ARG: z.string().default('1'),
  OTEL_SERVICE_NAME: z.string().min(1).max(255).optional(),
};

export interface TracingConfig {
  /** Where the collector takes traces. */
  url: URL;
  /** Whether whoever began a trace decides about its spans. */
  parentBased: boolean;
  /** The share of the other traces whose spans are sent, 0 to 1. */
  share: number;
  /** By default berth-ROLE. */
  serviceName: string | undefined;
}

type Environment = z.infer<z.ZodObject<typeof tracingEnvironment>>;

/**
 * The settings; undefined without an endpoint, whatever else is set: a cluster may give the variables to all its pods.
 * `fail` gets what is wrong.
 */
export function readTracing(value: Environment, fail: (what: string) => never): TracingConfig | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER: name } = value;
  if (endpoint === undefined) return undefined;
  const url = z.url({ protocol: /^https?$/ }).safeParse(endpoint);
  if (!url.success) {
    return fail('OTEL_EXPORTER_OTLP_ENDPOINT: expected an http or https URL, for example http://collector:4318');
  }
  const sampler = SAMPLERS.find((one) => one === name);
  if (sampler === undefined) return fail(`OTEL_TRACES_SAMPLER: expected one of ${SAMPLERS.join(', ')}`);
  const ratio = share.safeParse(value.OTEL_TRACES_SAMPLER_ARG);
  if (!ratio.success) return fail('OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1');
  return {
    url: new URL(`${trimEnd(endpoint, '/')}/v1/traces`),
    parentBased: sampler.startsWith('parentbased_'),
    share: sampler.endsWith('always_on') ? 1 : sampler.endsWith('always_off') ? 0 : ratio.data,
    serviceName: value.OTEL_SERVICE_NAME,
  };
}
