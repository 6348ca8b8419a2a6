/** Whether a host is the name of a Service, which only the cluster's own name servers know. */
export function isServiceName(host: string): boolean {
  return /\.svc(?:\.|$)/.test(host);
}
