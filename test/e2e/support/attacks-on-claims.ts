import { type Attack, CREATE, ownedBy, pod, post, type Targets } from './attack.ts';
import { TENANT } from './release.ts';

const CLAIM = 'berth.dev/claim';
const FORGED = JSON.stringify({ claim: { node: 'any', gpuCount: 8, pricePerHour: '0.00' } });
const ANNOTATED = { annotations: { [CLAIM]: FORGED } };

/** A tenant who may make pods tries to rent by a pod that looks like the controller's, or to change its price. */
export function onClaims({ instance, pod: own, otherPod, admin }: Targets): Attack[] {
  const change = (name: string, claim: string, ...how: string[]): string[] => {
    const patch = JSON.stringify({ metadata: { annotations: { [CLAIM]: claim } } });
    return ['patch', 'pod', name, '-n', TENANT, '--type=merge', '-p', patch, ...how];
  };
  const metadata = { namespace: TENANT, name: `${instance.name}-2`, ...ANNOTATED };
  const binding = {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { namespace: TENANT, name: otherPod, ...ANNOTATED },
    target: { kind: 'Node', name: 'any' },
  };
  const ways: { title: string; as?: string; command: readonly string[]; input?: object }[] = [
    { title: 'a tenant makes a pod with a claim', as: admin, command: CREATE, input: pod(metadata) },
    {
      title: 'a tenant makes a pod with a claim that an instance seems to own',
      as: admin,
      command: CREATE,
      input: pod({ ...metadata, ...ownedBy(instance) }),
    },
    { title: 'a tenant writes a claim to a pod', as: admin, command: change(otherPod, FORGED) },
    { title: 'a tenant changes the claim of a pod', as: admin, command: change(own, FORGED) },
    {
      title: 'an administrator writes a claim with the status of a pod',
      command: change(own, FORGED, '--subresource=status'),
    },
    {
      title: 'an administrator writes a claim with a binding',
      command: post(TENANT, `${otherPod}/binding`),
      input: binding,
    },
  ];
  return ways.map((way) => ({ ...way, refusal: "only Berth's controller writes the annotation berth.dev/claim" }));
}
