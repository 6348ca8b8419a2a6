import { Counter, Gauge, type Registry } from 'prom-client';
import { type TokenMeter, UNBILLED_REASONS } from './token-meter.ts';

/** What an operator must know of the bills for tokens, read at each scrape. */
export function watchBilling(registry: Registry, meter: TokenMeter): void {
  const registers = [registry];
  const lag = new Gauge({
    name: 'berth_gateway_ledger_lag_seconds',
    help: 'Age of the oldest call to a priced model that is in no token record yet.',
    registers,
    collect() {
      lag.set(meter.lagSeconds);
    },
  });
  const unbilled = new Counter({
    name: 'berth_gateway_unbilled_calls_total',
    help: 'Calls to priced models that cost nothing, by reason (unreported, full, refused).',
    labelNames: ['reason'],
    registers,
    collect() {
      unbilled.reset();
      for (const reason of UNBILLED_REASONS) unbilled.inc({ reason }, meter.unbilled[reason]);
    },
  });
}
