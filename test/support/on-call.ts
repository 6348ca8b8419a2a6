import { expect } from 'vitest';
import type { Prometheus } from './prometheus.ts';
import { namedBy, RunbookShell, type RunbookShellOptions } from './runbook.ts';
import { waitFor } from './wait-for.ts';

/** Milliseconds: longer than any alert or any step of a runbook takes. */
export const LONG_MS = 120_000;

/** What tenants and others do meanwhile, again and again. */
type Use = () => Promise<unknown>;

const nothing: Use = () => Promise.resolve();

/** These alerts, and those that their runbooks lead to. */
function withNamed(alerts: Iterable<string>): Set<string> {
  return new Set([...alerts].flatMap((alert) => [alert, ...namedBy(alert)]));
}

/** Who is on call: sees alerts fire by faults, does what their runbooks say, and sees them end. */
export class OnCall {
  readonly #prometheus: Prometheus;
  readonly #shell: RunbookShell;
  /** Alerts whose fault was made and that are not over. */
  readonly #faults = new Set<string>();

  constructor(prometheus: Prometheus, options: RunbookShellOptions) {
    this.#prometheus = prometheus;
    this.#shell = new RunbookShell({ ...options, env: { ...options.env, PROM: prometheus.url } });
  }

  /** From now on these may fire: their faults are made. */
  expect(...alerts: readonly string[]): void {
    for (const alert of alerts) this.#faults.add(alert);
  }

  /** What fires after a moment. An alert without a fault that is for it, or that leads to it, fails the test. */
  async firing(): Promise<string[]> {
    const found = await this.#prometheus.firing();
    const explained = withNamed(this.#faults);
    expect(found.filter((alert) => !explained.has(alert))).toEqual([]);
    return found;
  }

  /** Waits until the alert fires. Meanwhile it does what the fault spoils. */
  async fires(alert: string, use = nothing): Promise<void> {
    this.expect(alert);
    await waitFor(
      `${alert} to fire`,
      async () => {
        await use();
        return (await this.firing()).includes(alert);
      },
      LONG_MS,
    );
  }

  /** Does what the runbook says under Look until it prints this. Returns all that it prints. */
  shows(alert: string, what: RegExp, names: Parameters<RunbookShell['look']>[1] = {}): Promise<string> {
    return waitFor(`the runbook of ${alert} to show ${what}`, async () => {
      const said = await this.#shell.look(alert, names).catch(String);
      return what.test(said) && said;
    });
  }

  /** Runs a command that stands in the runbook. Returns what it printed. */
  run(alert: string, command: string, names: Parameters<RunbookShell['run']>[2] = {}): Promise<string> {
    return this.#shell.run(alert, command, names);
  }

  /** Waits until the alert is over, with what came of its fault. Meanwhile it does what its end needs. */
  async ends(alert: string, use = nothing): Promise<void> {
    await waitFor(
      `${alert} to be over`,
      async () => {
        await use();
        const others = withNamed([...this.#faults].filter((one) => one !== alert));
        const left = [...withNamed([alert])].filter((one) => one === alert || !others.has(one));
        const found = await this.firing();
        return left.every((one) => !found.includes(one));
      },
      LONG_MS,
    );
    this.#faults.delete(alert);
  }

  /** Waits until nothing fires any more. */
  async allEnd(): Promise<void> {
    for (const alert of this.#faults) await this.ends(alert);
    expect(await this.firing()).toEqual([]);
  }
}
