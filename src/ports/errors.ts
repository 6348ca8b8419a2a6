/** Why a port cannot be used, and the HTTP status of the answer. */
export const STATUS_OF = {
  port_not_declared: 404,
  instance_not_running: 409,
  instance_simulated: 409,
  port_unreachable: 502,
  too_many_streams: 429,
  dashboard_unavailable: 503,
} as const;

export type PortProblem = keyof typeof STATUS_OF;

/** The message is for the client: what happened, why, what to do. */
export class PortError extends Error {
  override name = 'PortError';
  readonly problem: PortProblem;

  constructor(problem: PortProblem, message: string, options?: ErrorOptions) {
    super(message, options);
    this.problem = problem;
  }
}
