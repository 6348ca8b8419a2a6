import type { Report } from '../examine.ts';
import type { Finding } from '../finding.ts';
import type { ProbeOutcome } from './probe.ts';

const NAME = 'network-probe';

function findingOf(outcome: ProbeOutcome): Finding[] {
  if (outcome.result === 'closed') return [];
  const isOpen = outcome.result === 'open';
  return [
    {
      check: NAME,
      severity: isOpen ? 'error' : 'unknown',
      reason: isOpen ? 'NotEnforced' : 'ProbeFailed',
      objects: [],
      message: isOpen
        ? 'A pod that a NetworkPolicy closes was reached: nothing enforces NetworkPolicies.'
        : `Not known: ${outcome.result === 'unknown' ? outcome.why : ''}.`,
      why: 'Where nothing enforces them, pods of tenants reach each other, the API server and the metadata service.',
      remedy: 'kubectl get daemonsets --all-namespaces -o wide   # is one of them Calico, Cilium or the like?',
    },
  ];
}

/** The report with what the probe saw. What it knows now is no longer unknown. */
export function withProbe(report: Report, outcome: ProbeOutcome): Report {
  const isKnown = outcome.result !== 'unknown';
  const checks = report.checks.map((one) => {
    const findings = one.findings.filter(({ reason }) => !isKnown || reason !== 'EnforcementNotKnown');
    return { ...one, findings };
  });
  const probe = { name: NAME, title: 'A NetworkPolicy closes a pod, as probed', findings: findingOf(outcome) };
  return { ...report, checks: [...checks, probe] };
}
