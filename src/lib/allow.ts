export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** The value of Allow: every endpoint answers OPTIONS, and HEAD where it answers GET. */
export function allowOf(methods: readonly Method[]): string {
  const names = methods.flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]));
  return [...names, 'OPTIONS'].join(', ');
}

/** What a 405 says. */
export function notAllowed(method: string | undefined, allow: string): string {
  return `${method} is not allowed here, only ${allow.replace(', OPTIONS', '')}.`;
}
