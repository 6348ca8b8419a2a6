import { Model } from '../../../../src/gateway/balance/model.ts';

export const POLICIES = ['round robin', 'least load', 'Berth'] as const;
export type Policy = (typeof POLICIES)[number];

/** Makes the gateway of this process choose servers so. The product has its own way alone. */
export function usePolicy(policy: Policy): void {
  const own = Object.getOwnPropertyDescriptor(Model.prototype, 'pick')?.value as Model['pick'];
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
}
