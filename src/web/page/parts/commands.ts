/** A word of a shell command: what a tenant wrote must stay one word, and run nothing. */
function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

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
