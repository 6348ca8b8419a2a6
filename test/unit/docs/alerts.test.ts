import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';
import { ALERTS, ALERTS_TEXT } from '../../support/alert-rules.ts';
import { hasPrometheus, promtool } from '../../support/prometheus.ts';

/** Values of series in promtool's notation, every 30 s. */
type Series = Readonly<Record<string, string>>;

const STARTS = 'berth_instance_start_stage_seconds';

/** A system that is well, beside another program with controllers that fail. */
const HEALTHY: Series = {
  'leader_election_master_status{name="berth-controller",instance="c1"}': '1x100',
  'leader_election_master_status{name="berth-controller",instance="c2"}': '0x100',
  'leader_election_master_status{name="berth-notifier",instance="n1"}': '1x100',
  'leader_election_master_status{name="berth-notifier",instance="n2"}': '0x100',
  'berth_gateway_in_flight{instance="a"}': '0x100',
  'berth_ssh_connections{instance="s"}': '0x100',
  'berth_informer_synced{kind="Pod",instance="c1"}': '1x100',
  'berth_informer_synced{kind="Webhook",instance="a"}': '1x100',
  'berth_informer_synced{kind="APIKey",instance="a"}': '1x100',
  'berth_informer_synced{kind="SSHKey",instance="s"}': '1x100',
  'berth_informer_stale_seconds{kind="Pod",instance="c1"}': '45x100',
  'berth_leader_caches_behind{instance="c1"}': '0x100',
  'rest_client_requests_total{code="200",instance="c1"}': '0+100x100',
  'rest_client_requests_total{code="404",instance="c1"}': '0+100x100',
  'rest_client_requests_total{code="500",instance="c1"}': '0+5x100',
  'rest_client_requests_total{code="500",instance="other"}': '0+900x100',
  'controller_runtime_reconcile_total{controller="gpuinstance",result="success",instance="c1"}': '0+100x100',
  'controller_runtime_reconcile_total{controller="other",result="error",instance="other"}': '0+100x100',
  'controller_runtime_reconcile_errors_total{controller="gpuinstance",instance="c1"}': '0+5x100',
  'controller_runtime_reconcile_errors_total{controller="other",instance="other"}': '0+100x100',
  'berth_http_request_duration_seconds_count{route="/instances",code="200"}': '0+100x100',
  'berth_http_request_duration_seconds_count{route="/instances",code="500"}': '0+1x100',
  'berth_http_request_duration_seconds_count{route="/chat/completions",code="503"}': '0+90x100',
  'berth_http_request_duration_seconds_count{route="/instances/{id}/proxy",code="502"}': '0+90x100',
  'berth_waiting_oldest_seconds{product="A100",type="on_demand"}': '1800x100',
  'berth_waiting_oldest_seconds{product="A100",type="interruptible"}': '90000x100',
  'berth_waiting_oldest_seconds{product="other",type="on_demand"}': '90000x100',
  [`${STARTS}_bucket{stage="started",le="600"}`]: '0+1x100',
  [`${STARTS}_bucket{stage="started",le="1200"}`]: '0+1x100',
  [`${STARTS}_bucket{stage="started",le="+Inf"}`]: '0+1x100',
  [`${STARTS}_count{stage="started"}`]: '0+1x100',
  // One large image is no alert, and neither is the wait for a place.
  [`${STARTS}_bucket{stage="ready",le="600"}`]: '0x100',
  [`${STARTS}_bucket{stage="ready",le="1200"}`]: '0x60 1x40',
  [`${STARTS}_bucket{stage="ready",le="+Inf"}`]: '0x60 1x40',
  [`${STARTS}_count{stage="ready"}`]: '0x60 1x40',
  [`${STARTS}_bucket{stage="waited",le="600"}`]: '0x100',
  [`${STARTS}_bucket{stage="waited",le="+Inf"}`]: '0+1x100',
  [`${STARTS}_count{stage="waited"}`]: '0+1x100',
  'berth_instance_endings_total{reason="PodRejected"}': '0x60 2x40',
  'berth_instance_endings_total{reason="ContainerFailed"}': '0+10x100',
  'berth_instances{state="running",reason="Running"}': '40x100',
  'berth_gpus{product="A100",state="unhealthy"}': '0x100',
  'berth_gpus{product="A100",state="free"}': '8x100',
  'berth_gateway_endpoints{state="open",instance="a"}': '0x100',
  'berth_gateway_endpoints{state="ready",instance="a"}': '2x100',
  'berth_gateway_requests_total{gen_ai_request_model="tiny",berth_outcome="ok"}': '0+100x100',
  'berth_gateway_requests_total{gen_ai_request_model="tiny",berth_outcome="unavailable"}': '0+1x100',
  'berth_gateway_requests_total{gen_ai_request_model="tiny",berth_outcome="client_error"}': '0+100x100',
  'berth_gateway_requests_total{gen_ai_request_model="quiet",berth_outcome="upstream_error"}': '0x60 1x40',
  'berth_ssh_sessions_total{kind="shell",way="direct"}': '0+10x100',
  'berth_ssh_sessions_total{kind="shell",way="none"}': '0+90x100',
  'berth_ssh_sessions_total{kind="shell",way="unreachable"}': '0x100',
  berth_ledger_lag_seconds: '600x100',
  'berth_gateway_ledger_lag_seconds{instance="a"}': '20x100',
  // A target that is back after an hour takes what came meanwhile.
  'berth_webhook_lag_seconds{instance="n1"}': '2x75 3600x15',
  'berth_webhook_lag_seconds{instance="n2"}': '0x100',
  'berth_log_lines_dropped_total{instance="a"}': '0x100',
};

/** The series that a fault gives other values; undefined for one that is gone. */
const FAULTS: Readonly<Record<string, Readonly<Record<string, string | undefined>>>> = {
  BerthNoLeader: { 'leader_election_master_status{name="berth-controller",instance="c1"}': '0x100' },
  BerthAPIDown: { 'berth_gateway_in_flight{instance="a"}': undefined },
  BerthSSHDown: { 'berth_ssh_connections{instance="s"}': undefined },
  BerthNotifierDown: { 'leader_election_master_status{name="berth-notifier",instance="n1"}': '0x100' },
  BerthCachesStale: { 'berth_informer_stale_seconds{kind="Pod",instance="c1"}': '0+30x100' },
  BerthAPIServerErrors: { 'rest_client_requests_total{code="<error>",instance="c1"}': '0+100x100' },
  BerthReconcileErrors: {
    'controller_runtime_reconcile_errors_total{controller="gpuinstance",instance="c1"}': '0+50x100',
  },
  BerthHTTPErrors: { 'berth_http_request_duration_seconds_count{route="/instances",code="503"}': '0+50x100' },
  BerthWaitingLong: { 'berth_waiting_oldest_seconds{product="A100",type="on_demand"}': '1800+30x100' },
  BerthStartsSlow: { [`${STARTS}_bucket{stage="started",le="600"}`]: '0x100' },
  BerthStartsFailing: { 'berth_instance_endings_total{reason="ContainerNotCreated"}': '0+1x100' },
  BerthNodeLost: { 'berth_instances{state="interrupted",reason="NodeLost"}': '2x100' },
  BerthGPUsUnhealthy: { 'berth_unhealthy_gpus{node="gpu-7",product="A100"}': '1x100' },
  BerthModelServersOut: { 'berth_gateway_endpoints{state="open",instance="a"}': '1x100' },
  BerthModelCallsFailing: {
    'berth_gateway_requests_total{gen_ai_request_model="tiny",berth_outcome="unavailable"}': '0+50x100',
  },
  BerthSSHSessionsFailing: { 'berth_ssh_sessions_total{kind="shell",way="unreachable"}': '0+50x100' },
  BerthLedgerLag: { berth_ledger_lag_seconds: '0+90x100' },
  BerthTokenLedgerLag: { 'berth_gateway_ledger_lag_seconds{instance="a"}': '0+30x100' },
  BerthWebhookLag: { 'berth_webhook_lag_seconds{instance="n1"}': '0+30x100' },
  BerthLogLinesDropped: { 'berth_log_lines_dropped_total{instance="a"}': '0+1x100' },
};

const FIRING = 'count by (alertname) (ALERTS{alertstate="firing"})';

/** A test for promtool: exactly these alerts fire at each of these times. */
function fires(
  alerts: readonly string[],
  series: Readonly<Record<string, string | undefined>>,
  ...times: readonly string[]
): object {
  const samples = alerts.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 }));
  return {
    name: alerts.join(', ') || 'none',
    interval: '30s',
    input_series: Object.entries({ ...HEALTHY, ...series }).flatMap(([name, values]) =>
      values === undefined ? [] : [{ series: name, values }],
    ),
    promql_expr_test: times.map((at) => ({ expr: FIRING, eval_time: at, exp_samples: samples })),
  };
}

/** What promtool says of rules that are evaluated this often: its exit status, and what went wrong. */
async function verdictEach(interval: string, ...tests: readonly object[]): Promise<[number, string]> {
  const text = JSON.stringify({ rule_files: ['alerts.yaml'], evaluation_interval: interval, tests });
  const files = { 'alerts.yaml': ALERTS_TEXT, 'tests.yaml': text };
  const { code, stdout, stderr } = await promtool(['test', 'rules', '{}/tests.yaml'], files);
  return [code, code === 0 ? '' : stdout + stderr];
}

const verdict = (...tests: readonly object[]): Promise<[number, string]> => verdictEach('30s', ...tests);

it('every alert has a fault', () => {
  expect(Object.keys(FAULTS)).toEqual(ALERTS.map(({ alert }) => alert));
});

it('every alert is fired by a real fault in an integration test, which follows its runbook', () => {
  const files = ['runbooks', 'runbooks-of-roles', 'notifier-alerts'].map((name) =>
    join(ROOT, `test/integration/${name}.test.ts`),
  );
  const text = files.map((file) => readFileSync(file, 'utf8')).join('');
  for (const step of ['fires', 'shows']) {
    const found = new Set(
      [...text.matchAll(new RegExp(`\\b${step}\\(\\s*'(Berth\\w+)'`, 'g'))].map(([, name]) => name),
    );
    expect(ALERTS.map(({ alert }) => alert).filter((alert) => !found.has(alert))).toEqual([]);
  }
});

describe.skipIf(!(await hasPrometheus()))('the alerts', () => {
  it('are silent while all is well', async () => {
    expect(await verdict(fires([], {}, '1m', '15m', '32m', '45m'))).toEqual([0, '']);
  });

  it('each fire by their fault, and no other does', async () => {
    const tests = Object.entries(FAULTS).map(([alert, fault]) => fires([alert], fault, '45m'));
    // As Prometheus does unless it is told otherwise, and half of the work.
    expect(await verdictEach('1m', ...tests)).toEqual([0, '']);
  });

  it('wait before they fire where a restart would look the same', async () => {
    const names = ['BerthNoLeader', 'BerthAPIDown', 'BerthSSHDown', 'BerthNotifierDown'];
    const gone = Object.assign({}, ...names.map((name) => FAULTS[name])) as (typeof FAULTS)[string];
    expect(await verdict(fires([], gone, '1m30s'), fires(names, gone, '2m30s'))).toEqual([0, '']);
  });

  it('take a role that hangs at its start for one that is gone', async () => {
    const api = { 'berth_informer_synced{kind="APIKey",instance="a"}': '0x100' };
    const ssh = { 'berth_informer_synced{kind="SSHKey",instance="s"}': '0x100' };
    expect(await verdict(fires(['BerthAPIDown'], api, '45m'), fires(['BerthSSHDown'], ssh, '45m'))).toEqual([0, '']);
  });

  it('know a notifier that has gone from webhooks that are off', async () => {
    const [first, second] = ['n1', 'n2'].map(
      (one) => `leader_election_master_status{name="berth-notifier",instance="${one}"}`,
    );
    const gone = { [first ?? '']: undefined, [second ?? '']: undefined };
    const off = { ...gone, 'berth_informer_synced{kind="Webhook",instance="a"}': undefined };
    expect(await verdict(fires(['BerthNotifierDown'], gone, '45m'), fires([], off, '45m'))).toEqual([0, '']);
  });

  it('would be found silent where they should fire', async () => {
    const [code, said] = await verdict(fires(['BerthNoLeader'], {}, '45m'));
    expect(code).not.toBe(0);
    expect(said).toContain('BerthNoLeader');
  });
});
