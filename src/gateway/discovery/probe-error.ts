/** What answered the probe is no model server, or none yet. */
export class ProbeError extends Error {
  override readonly name = 'ProbeError';
}
