/**
 * An image reference as the kubelet reads it (github.com/distribution/reference): a registry, which may have a port, a
 * name, a tag and a digest. The empty string means the default image.
 */
export const IMAGE_PATTERN =
  /^$|^(?:(?:[a-zA-Z0-9][a-zA-Z0-9.-]*|\[[a-fA-F0-9:]+\])(?::[0-9]{1,5})?\/)?[a-z0-9][a-z0-9._/-]*(?::[@a-zA-Z0-9_][@a-zA-Z0-9._-]*)?(?:@[a-z0-9]+(?:[+._-][a-z0-9]+)*:[a-fA-F0-9]{32,128})?$/;

export const IMAGE_HINT =
  'write an image such as ubuntu:24.04 or registry.example:5000/team/app:1.2, in lower case but for its tag';

/** The image of a request as the specification of the HTTP interface has it, section 2.1. */
export const REQUESTED_IMAGE_PATTERN =
  /^$|^([a-z0-9][a-z0-9._/-]*)(?::[@a-zA-Z0-9][@a-zA-Z0-9._-]*|@sha256:[a-fA-F0-9]{64})?$/u;

export const REQUESTED_IMAGE_HINT =
  'write an image such as ubuntu:24.04 or registry.example/team/app:1.2, in lower case but for its tag. This field takes neither the port of a registry nor a tag with a digest: make a template with such an image, and send its template_id';

export const MAX_IMAGE_LENGTH = 512;

const HOST = '(?:[a-zA-Z0-9-]+(?:\\.[a-zA-Z0-9-]+)*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?';
const COMPONENT = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const RUNNABLE = new RegExp(
  `^(?:${HOST}/)?${COMPONENT}(?:/${COMPONENT})*(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?(?:@(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}))?$`,
);

/** Whether a container runtime takes the reference. The specification's pattern allows more, and nothing could run that. */
export function isRunnable(image: string): boolean {
  return RUNNABLE.test(image);
}

/** `hasPlainPath` as a rule of a kind. */
export const PLAIN_PATH_RULE = "!self.matches('[./][./]|/([:@]|$)')";
export const PLAIN_PATH_HINT = 'write the image without .. and //, as its registry has it';

/**
 * Whether each part of an image's path is a name: no registry has another, and with `..` one path would pass for another
 * under a ceiling.
 */
export function hasPlainPath(image: string): boolean {
  return !/[./][./]|\/(?:[:@]|$)/.test(image);
}
