/** Bounds of the HTTP interface; its specification leaves them open, so they are decided and documented here. */
export const LIMITS = {
  name: 128,
  label: 255,
  templateHashId: 64,
  templateImage: 512,
  runtype: 255,
  stats: 4096,
  publicKey: 16_384,
  sshKeyIds: 64,
  diskGb: { min: 1, max: 16_384 },
  offerDiskSpace: { min: 0, max: 1_048_576 },
  idempotencyKey: 255,
  /** Bytes of a JSON body on the compute endpoints. */
  body: 1024 * 1024,
} as const;
