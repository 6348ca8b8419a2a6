import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../../tools/lib/free-ports.ts';
import { cacheFolder } from '../../../tools/lib/paths.ts';
import { plainProgress } from '../../../tools/lib/progress.ts';
import { COLLECTOR, ensureGoTools } from '../../../tools/release/go-tools.ts';
import { waitFor } from '../wait-for.ts';

export interface Collector extends AsyncDisposable {
  /** As `OTEL_EXPORTER_OTLP_ENDPOINT` takes it. */
  endpoint: string;
}

/** An OpenTelemetry Collector that hands on what it gets at once. Builds it on the first call of a machine. */
export async function startCollector(to: { endpoint: string }): Promise<Collector> {
  const { signal } = new AbortController();
  const options = { label: 'collector', programs: [COLLECTOR], progress: plainProgress(), signal };
  const programs = await ensureGoTools({ ...options, cache: cacheFolder(process.env) });
  const folder = await mkdtemp(join(tmpdir(), 'berth-collector-'));
  const [port = 0] = await freePorts(1);
  const config = {
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
    exporters: {
      otlp_http: { endpoint: to.endpoint, sending_queue: { enabled: false }, retry_on_failure: { enabled: false } },
    },
    service: {
      pipelines: { traces: { receivers: ['otlp'], exporters: ['otlp_http'] } },
      telemetry: { metrics: { level: 'none' } },
    },
  };
  const file = join(folder, 'config.yaml');
  await writeFile(file, JSON.stringify(config));
  const child = spawn(join(programs, COLLECTOR.name), ['--config', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(child, 'exit');
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  const endpoint = `http://127.0.0.1:${port}`;
  await waitFor('the collector to take traces', async () => {
    if (child.exitCode !== null) throw new Error(`The collector ended by itself:\n${log}`);
    const headers = { 'content-type': 'application/x-protobuf' };
    return fetch(`${endpoint}/v1/traces`, { method: 'POST', headers }).then(
      ({ ok }) => ok,
      () => false,
    );
  });
  return {
    endpoint,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await exited;
      await rm(folder, { recursive: true });
    },
  };
}
