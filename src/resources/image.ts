/**
 * The image reference pattern of the HTTP interface, section 2.1 of its specification. The empty string matches and
 * means the default image.
 */
export const IMAGE_PATTERN = /^$|^([a-z0-9][a-z0-9._/-]*)(?::[@a-zA-Z0-9][@a-zA-Z0-9._-]*|@sha256:[a-fA-F0-9]{64})?$/u;
export const MAX_IMAGE_LENGTH = 512;
