import { AccessWatch } from '../../src/access/access-watch.ts';
import type { Caller, Use } from '../../src/access/authenticator.ts';
import { fakeClock } from './fake-clock.ts';

/** Every namespace is a tenant. */
export const ALL_TENANTS = {
  isKnown: true,
  isGone: () => false,
  refusal: () => undefined,
  onChange: () => () => undefined,
};

/** Access that ends when the test says why. By default it never does. */
export function accessWhile(refusal: (caller: Caller, use: Use) => string | undefined = () => undefined): {
  access: AccessWatch;
  /** Looks at all that is open. */
  recheck: () => Promise<void>;
} {
  const clock = fakeClock();
  const apiKeys = { onChange: () => () => undefined };
  const access = new AccessWatch({ authenticator: { refusal }, apiKeys, tenants: ALL_TENANTS, clock });
  return { access, recheck: () => clock.advance(1000) };
}
