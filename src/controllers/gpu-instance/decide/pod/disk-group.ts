import type { Namespace } from '../../../../kube/types.ts';

/** Elsewhere than on OpenShift. */
const GROUP = 1000;

/**
 * Where OpenShift writes which groups a namespace has, as `FIRST/COUNT` or `FIRST-LAST`, several with commas between. Its
 * constraint restricted-v2 takes the first of them alone (openshift/apiserver-library-go, sccmatching/matcher.go).
 */
const NAMESPACE_GROUPS = ['openshift.io/sa.scc.supplemental-groups', 'openshift.io/sa.scc.uid-range'];
const FIRST = /^([1-9]\d{0,9})[/-]/;
const LAST_GROUP = 2 ** 31 - 1;

/** Group of the files on a PersistentVolumeClaim, and of every process: users other than root can write there too. */
export function diskGroupOf(space: Namespace | undefined): number {
  const { annotations = {} } = space?.metadata ?? {};
  const written = NAMESPACE_GROUPS.map((name) => annotations[name]).find((text) => text !== undefined);
  const first = Number(FIRST.exec(written ?? '')?.[1] ?? GROUP);
  return first <= LAST_GROUP ? first : GROUP;
}
