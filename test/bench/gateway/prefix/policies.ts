import { Model } from '../../../../src/gateway/balance/model.ts';

/**
 * Loaded before the gateway (`node --import`), it makes the gateway choose servers as BERTH_BENCH_POLICY says. The
 * product has one way to choose alone.
 */
export const POLICIES = ['round robin', 'least load', 'Berth'] as const;
export type Policy = (typeof POLICIES)[number];

const own = Object.getOwnPropertyDescriptor(Model.prototype, 'pick')?.value as Model['pick'];
const policy = process.env['BERTH_BENCH_POLICY'];
let turn = 0;

if (policy === 'round robin') {
  Model.prototype.pick = function pick(this: Model, _key, tried) {
    const free = this.members.filter(({ endpoint }) => endpoint.available && !tried.includes(endpoint));
    turn += 1;
    return free[turn % free.length];
  };
}
if (policy === 'least load') {
  Model.prototype.pick = function pick(this: Model, _key, tried, tenant) {
    return own.call(this, undefined, tried, tenant);
  };
}
