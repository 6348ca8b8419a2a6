import { quote } from '../../../lib/quote.ts';

/** Of the browser; the tests have one of their own. */
declare const location: { readonly origin: string };

/** The same call with curl and a key. */
export function curl(method: string, path: string, body?: unknown): string {
  const data = body === undefined ? '' : ` -H 'Content-Type: application/json' -d ${quote(JSON.stringify(body))}`;
  return `curl -X ${method} -H "Authorization: Bearer $BERTH_API_KEY"${data} ${quote(`${location.origin}/api/v1${path}`)}`;
}

/** The same change of an instance with kubectl. */
export function kubectlPatch(namespace: string, id: string, spec: unknown): string {
  return `kubectl patch gpuinstance ${id} -n ${namespace} --type=merge -p ${quote(JSON.stringify({ spec }))}`;
}

export function kubectlDelete(namespace: string, id: string): string {
  return `kubectl delete gpuinstance ${id} -n ${namespace}`;
}

/** A change of the object that has this id in the API. Kubernetes knows it by another name, which its status leads to. */
export function kubectlById(
  verb: 'delete' | 'patch',
  kind: 'sshkey' | 'instancetemplate',
  { namespace, id }: { namespace: string; id: number },
): string {
  const path = quote(`{.items[?(@.status.id==${id})].metadata.name}`);
  return `kubectl ${verb} ${kind} -n ${namespace} $(kubectl get ${kind} -n ${namespace} -o jsonpath=${path})`;
}

/** What the page changes of a pool, with the words of its spec. */
export interface PoolChange {
  currency: string;
  sizes: readonly number[];
  prices: readonly { product: string; onDemand: string; interruptible: string }[];
}

/** The same change of a pool with kubectl. */
export function kubectlPool(pool: string, spec: PoolChange): string {
  return `kubectl patch gpupool ${pool} --type=merge -p ${quote(JSON.stringify({ spec }))}`;
}
