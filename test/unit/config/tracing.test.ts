import { expect, it } from 'vitest';
import { readConfig } from '../../../src/config/config.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

it('traces nothing without an endpoint, whatever else a cluster gives its pods', () => {
  const others = { OTEL_TRACES_SAMPLER: 'jaeger_remote', OTEL_TRACES_SAMPLER_ARG: 'x', OTEL_SERVICE_NAME: 'any' };
  expect(readConfig({ ...others, OTEL_EXPORTER_OTLP_ENDPOINT: '' }).tracing).toBeUndefined();
});

it.each([
  ['http://collector:4318', 'http://collector:4318/v1/traces'],
  ['http://collector:4318/', 'http://collector:4318/v1/traces'],
  ['https://collector.example.com/otlp', 'https://collector.example.com/otlp/v1/traces'],
])('sends traces for %s to %s', (endpoint, url) => {
  expect(readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }).tracing?.url.href).toBe(url);
});

it.each([
  [undefined, undefined, true, 1],
  ['always_on', '0.5', false, 1],
  ['always_off', undefined, false, 0],
  ['traceidratio', '0.25', false, 0.25],
  ['parentbased_always_on', undefined, true, 1],
  ['parentbased_always_off', undefined, true, 0],
  ['parentbased_traceidratio', '0', true, 0],
])('samples by %s and %s: by the parent %s, else a share of %d', (sampler, argument, parentBased, share) => {
  const { tracing } = readConfig({
    ...ENDPOINT,
    ...(sampler !== undefined && { OTEL_TRACES_SAMPLER: sampler }),
    ...(argument !== undefined && { OTEL_TRACES_SAMPLER_ARG: argument }),
  });
  expect(tracing).toMatchObject({ parentBased, share });
});

it.each([
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318', 'expected an http or https URL'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'grpc://collector:4317', 'expected an http or https URL'],
  ['OTEL_TRACES_SAMPLER', 'jaeger_remote', 'expected one of always_on'],
  ['OTEL_TRACES_SAMPLER_ARG', '2', 'expected a number from 0 to 1'],
])('says what is wrong with %s=%s', (name, value, message) => {
  expect(() => readConfig({ ...ENDPOINT, [name]: value })).toThrow(`${name}: ${message}`);
});
