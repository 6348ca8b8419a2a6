/** An image reference (specification of the HTTP interface, section 2.1). The empty string means the default image. */
export const IMAGE_PATTERN = /^$|^([a-z0-9][a-z0-9._/-]*)(?::[@a-zA-Z0-9][@a-zA-Z0-9._-]*|@sha256:[a-fA-F0-9]{64})?$/u;
export const MAX_IMAGE_LENGTH = 512;
